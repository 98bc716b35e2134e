package blob_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/test/outside"
)

// amazon plays S3, the token service, and the metadata service of containers
// and machines.
type amazon struct {
	*httptest.Server
	key, token, region string     // of the last request to S3
	asked              url.Values // the last request to the token service
}

var scope = regexp.MustCompile(`Credential=([^/]+)/\d+/([^/]+)/s3/`)

const credential = `{"Code":"Success","Version":1,"AccessKeyId":"%[1]s","SecretAccessKey":"s","Token":"t-%[1]s","SessionToken":"t-%[1]s","Expiration":"%[2]s"}`

func newAmazon(t *testing.T) *amazon {
	a := &amazon{}
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) {
		if assert.NoError(t, r.ParseForm()) {
			a.asked = r.PostForm
		}
		action := r.PostForm.Get("Action")
		fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials><AccessKeyId>%[1]s</AccessKeyId><SecretAccessKey>s</SecretAccessKey>`+
			`<SessionToken>t-%[1]s</SessionToken><Expiration>%[2]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`, action, soon)
	})
	mux.HandleFunc("GET /container", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, credential, "container", soon) })
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "token") })
	mux.HandleFunc("GET /latest/meta-data/iam/security-credentials/{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "machine") })
	mux.HandleFunc("GET /latest/meta-data/iam/security-credentials/machine", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, credential, "machine", soon) })
	mux.HandleFunc("GET /files/", func(w http.ResponseWriter, r *http.Request) {
		a.key, a.region, a.token = "", "", r.Header.Get("X-Amz-Security-Token")
		if found := scope.FindStringSubmatch(r.Header.Get("Authorization")); found != nil {
			a.key, a.region = found[1], found[2]
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `<Error><Code>NoSuchKey</Code></Error>`)
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

// TestS3CredentialsAndRegion checks the sources of a store's key and region.
func TestS3CredentialsAndRegion(t *testing.T) {
	a := newAmazon(t)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("web-token"), 0o600))
	config := `
[default]
region = of-default
[profile roles]
role_arn = arn:aws:iam::1:role/profile
source_profile = static
external_id = outside
[profile web]
role_arn = arn:aws:iam::1:role/web
web_identity_token_file = ` + token + `
[profile process]
credential_process = /bin/echo ` + fmt.Sprintf(credential, "process", "2099-01-01T00:00:00Z") + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "credentials"), []byte("[static]\naws_access_key_id = static\naws_secret_access_key = s\nregion = of-static\n"), 0o600))
	keys := map[string]string{"AWS_ACCESS_KEY_ID": "env", "AWS_SECRET_ACCESS_KEY": "s"}
	with := func(more ...string) map[string]string {
		all := map[string]string{}
		for name, value := range keys {
			all[name] = value
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	for name, c := range map[string]struct {
		query  string
		env    map[string]string
		key    string
		region string
		asked  string // of the token service
	}{
		"environment":                    {env: keys, key: "env", region: "of-default"},
		"region of the environment":      {env: with("AWS_REGION", "of-env"), key: "env", region: "of-env"},
		"region in the URL":              {query: "&region=of-url", env: with("AWS_REGION", "of-env"), key: "env", region: "of-url"},
		"profile of the environment":     {env: map[string]string{"AWS_PROFILE": "static"}, key: "static", region: "of-static"},
		"profile in the URL":             {query: "&profile=static", env: keys, key: "static", region: "of-static"},
		"program":                        {query: "&profile=process", key: "process", region: "us-east-1"},
		"role in the URL":                {query: "&role=arn:aws:iam::1:role/url", env: keys, key: "AssumeRole", region: "of-default", asked: "arn:aws:iam::1:role/url"},
		"role of a profile":              {query: "&profile=roles", key: "AssumeRole", region: "us-east-1", asked: "arn:aws:iam::1:role/profile"},
		"web identity":                   {env: map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": "arn:aws:iam::1:role/pod"}, key: "AssumeRoleWithWebIdentity", region: "of-default", asked: "arn:aws:iam::1:role/pod"},
		"web identity of a profile":      {query: "&profile=web", key: "AssumeRoleWithWebIdentity", region: "us-east-1", asked: "arn:aws:iam::1:role/web"},
		"role of the container":          {env: map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": a.URL + "/container"}, key: "container", region: "of-default"},
		"role of the machine":            {env: map[string]string{"AWS_EC2_METADATA_SERVICE_ENDPOINT": a.URL}, key: "machine", region: "of-default"},
		"role of the machine and a role": {query: "&role=arn:aws:iam::1:role/url", env: map[string]string{"AWS_EC2_METADATA_SERVICE_ENDPOINT": a.URL}, key: "AssumeRole", region: "of-default", asked: "arn:aws:iam::1:role/url"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"} {
				t.Setenv(name, "")
			}
			t.Setenv("AWS_ENDPOINT_URL_STS", a.URL)
			t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			a.asked = nil
			s, err := blob.Open(t.Context(), "s3://files?use_path_style=true&endpoint="+url.QueryEscape(a.URL)+c.query)
			require.NoError(t, err)
			t.Cleanup(func() { s.Close() })
			require.NoError(t, s.Check(t.Context()))
			assert.Equal(t, c.key, a.key)
			assert.Equal(t, c.region, a.region)
			assert.Equal(t, c.asked, a.asked.Get("RoleArn"))
			switch c.key {
			case "AssumeRoleWithWebIdentity":
				assert.Equal(t, "web-token", a.asked.Get("WebIdentityToken"))
			case "static", "env", "":
				assert.Empty(t, a.token)
				return
			}
			if strings.Contains(c.query, "roles") {
				assert.Equal(t, "outside", a.asked.Get("ExternalId"))
			}
			assert.Equal(t, "t-"+c.key, a.token)
		})
	}
}

// TestRefusedS3Settings checks that a setting that has no effect is refused
// before a request.
func TestRefusedS3Settings(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	config := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(config, []byte("[profile machine]\nrole_arn = arn:aws:iam::1:role/r\ncredential_source = Ec2InstanceMetadata\n"), 0o600))
	t.Setenv("AWS_CONFIG_FILE", config)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", empty)
	for source, says := range map[string]string{
		"s3://":                         "the bucket's name is missing",
		"s3://b?fips=true":              "parameter fips is not supported; supported are endpoint, kmskeyid, profile, region, role, ssetype, ",
		"s3://b?use_path_style=yes":     `use_path_style is "yes": want true or false`,
		"s3://b?endpoint=http://h/path": `endpoint is "http://h/path": want http://host:port`,
		"s3://b?endpoint=ftp://h":       `endpoint is "ftp://h"`,
		"s3://b?role=admin":             `role is "admin"`,
		"s3://b?profile=missing":        `profile "missing" is not in AWS's shared files`,
		"s3://b?profile=machine":        "credential_source is not supported",
		"s3://b?ssetype=aws:kms:dsse":   `ssetype "aws:kms:dsse" with kmskeyid "" is not supported`,
	} {
		_, err := blob.Open(t.Context(), source)
		if assert.ErrorContains(t, err, says, source) {
			assert.NotContains(t, err.Error(), "\n")
		}
	}
	t.Setenv("AWS_CA_BUNDLE", empty)
	_, err := blob.Open(t.Context(), "s3://b?endpoint=https://h")
	require.ErrorContains(t, err, "contains no certificate in PEM form")
}

// TestSizesAndOffsets checks files around the size of a part, read from any
// offset.
func TestSizesAndOffsets(t *testing.T) {
	each(t, func(t *testing.T, s *blob.Store) {
		const part = 5 << 20
		for _, size := range []int{0, 1, part, part + 1, 2 * part} {
			data := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
			put(t, s, "audio/x", data)
			for _, offset := range []int{0, size / 2} {
				r, err := s.OpenAt(t.Context(), "audio/x", int64(offset))
				require.NoError(t, err)
				got, err := io.ReadAll(r)
				require.NoError(t, err)
				require.NoError(t, r.Close())
				require.True(t, bytes.Equal(data[offset:], got), "%d from %d", size, offset)
			}
		}
	})
}

// TestAbortedPartsAreRemoved checks that no part of an unfinished upload stays
// in the store, where it would be invisible but charged.
func TestAbortedPartsAreRemoved(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	endpoint := outside.S3(t, "files")
	s := s3At(t, endpoint)
	unfinished := func() int {
		answer, err := http.Get(endpoint + "/files?uploads")
		require.NoError(t, err)
		defer answer.Body.Close()
		var list struct {
			Upload []struct{ Key string }
		}
		require.NoError(t, xml.NewDecoder(answer.Body).Decode(&list))
		return len(list.Upload)
	}
	w, err := s.Create(t.Context(), "audio/x")
	require.NoError(t, err)
	_, err = w.Write(make([]byte, 12<<20))
	require.NoError(t, err)
	require.Equal(t, 1, unfinished())
	w.Abort()
	assert.Zero(t, unfinished())
	assert.Empty(t, keys(t, s, ""))
}
