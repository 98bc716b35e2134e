package blob

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"gopkg.in/ini.v1"
)

// s3Settings are the parameters of an s3:// URL and of AWS's environment
// variables and shared files.
type s3Settings struct {
	region, endpoint string // "" are Amazon's
	authorities      string // a PEM file; "" are the system's
	named            string // the profile in the URL
	role             string // to assume with the credentials, an ARN
	encrypt, key     string
	pathStyle        bool
	profile          profile
}

// parseS3Settings reads the parameters of an s3:// URL, which have
// gocloud.dev's names, and then the environment and AWS's shared files.
func parseS3Settings(query url.Values) (s s3Settings, err error) {
	style := "false"
	texts := map[string]*string{
		"region": &s.region, "endpoint": &s.endpoint, "profile": &s.named, "role": &s.role, "ssetype": &s.encrypt, "kmskeyid": &s.key,
		"use_path_style": &style,
	}
	for name := range query {
		to := texts[name]
		if to == nil {
			return s, fmt.Errorf("parameter %s is not supported; supported are %s", name, strings.Join(slices.Sorted(maps.Keys(texts)), ", "))
		}
		*to = query.Get(name)
	}
	if s.pathStyle, err = strconv.ParseBool(style); err != nil {
		return s, fmt.Errorf("use_path_style is %q: want true or false", style)
	}
	if s.role != "" && !strings.HasPrefix(s.role, "arn:") {
		return s, fmt.Errorf("role is %q: want the role's ARN, such as arn:aws:iam::123456789012:role/NAME", s.role)
	}
	if s.profile, err = openProfile(s.named); err != nil {
		return s, err
	}
	s.region = cmp.Or(s.region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), s.profile.value("region"))
	s.endpoint = cmp.Or(s.endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), s.profile.value("endpoint_url"))
	if s.region == "" && s.endpoint != "" {
		s.region = "us-east-1" // stores other than Amazon's accept this region
	}
	s.authorities = cmp.Or(os.Getenv("AWS_CA_BUNDLE"), s.profile.value("ca_bundle"))
	return s, nil
}

func (s s3Settings) address() (*url.URL, error) {
	at := cmp.Or(s.endpoint, "s3.amazonaws.com")
	if !strings.Contains(at, "://") {
		at = "https://" + at
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, fmt.Errorf("endpoint is %q: want http://host:port or https://host:port, without a path", s.endpoint)
	}
	return u, nil
}

// profile is a profile of AWS's shared files.
type profile struct {
	name  string
	files *ini.File
}

// openProfile reads the profile name, "" for the environment's profile. A
// missing profile is an error if a name was set.
func openProfile(name string) (profile, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/nonexistent" // "" would be the working folder
	}
	name = cmp.Or(name, os.Getenv("AWS_PROFILE"), os.Getenv("AWS_DEFAULT_PROFILE"))
	files, err := ini.LooseLoad(
		cmp.Or(os.Getenv("AWS_CONFIG_FILE"), filepath.Join(home, ".aws", "config")),
		cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(home, ".aws", "credentials")))
	if err != nil {
		return profile{}, fmt.Errorf("AWS's shared files: %w", err)
	}
	if name != "" && !files.HasSection(name) && !files.HasSection("profile "+name) {
		return profile{}, fmt.Errorf("profile %q is not in AWS's shared files (~/.aws/config and ~/.aws/credentials)", name)
	}
	return profile{cmp.Or(name, "default"), files}, nil
}

// value returns the first of keys that the profile has, "" if it has none.
func (p profile) value(keys ...string) string {
	for _, key := range keys {
		for _, section := range []string{"profile " + p.name, p.name} {
			if v := p.files.Section(section).Key(key).String(); v != "" {
				return v
			}
		}
	}
	return ""
}

// credentialsError is the failure of a source of credentials.
type credentialsError struct {
	source string // "" if there is none
	err    error
}

func (e credentialsError) Error() string {
	if e.source == "" {
		return "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or configure AWS's shared files"
	}
	return fmt.Sprintf("no credentials from %s: %v", e.source, e.err)
}

func (e credentialsError) Unwrap() error { return e.err }

// source is a provider of credentials with the error of its failure.
type source struct {
	credentials.Provider
	name string // for errors, "" if nothing was configured
}

// RetrieveWithCredContext implements credentials.Provider.
func (s source) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	v, err := s.Provider.RetrieveWithCredContext(cc)
	if err == nil && (v.AccessKeyID == "" || v.SecretAccessKey == "") {
		err = errors.New("the access key or its secret is empty")
	}
	if err != nil {
		return v, credentialsError{s.name, err}
	}
	return v, nil
}

// provider returns the source of credentials, in the order of AWS's clients: a
// named profile, keys in the environment, a web identity in the environment,
// the profile, and finally the container's or the machine's role.
func (s s3Settings) provider() (*credentials.Credentials, error) {
	from, err := s.source()
	if err == nil && s.role != "" {
		from = s.assume(from, s.role, "")
	}
	return credentials.New(from), err
}

func (s s3Settings) source() (source, error) {
	env := os.Getenv
	switch {
	case s.named == "" && env("AWS_ACCESS_KEY_ID") != "" && env("AWS_SECRET_ACCESS_KEY") != "":
		return source{&credentials.EnvAWS{}, "the environment"}, nil
	case s.named == "" && env("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
		return source{&credentials.IAM{Endpoint: stsEndpoint(), Region: s.region}, "AWS_WEB_IDENTITY_TOKEN_FILE"}, nil
	}
	p := s.profile
	file := source{&credentials.FileAWSCredentials{Profile: p.name}, fmt.Sprintf("the profile %q of AWS's shared files", p.name)}
	role := p.value("role_arn")
	switch {
	case role != "" && p.value("web_identity_token_file") != "":
		m := &credentials.IAM{Endpoint: stsEndpoint(), Region: s.region}
		m.EKSIdentity.TokenFile, m.EKSIdentity.RoleARN, m.EKSIdentity.RoleSessionName = p.value("web_identity_token_file"), role, p.value("role_session_name")
		return source{m, file.name}, nil
	case role != "" && p.value("source_profile") != "":
		base := &credentials.FileAWSCredentials{Profile: p.value("source_profile")}
		return s.assume(source{base, fmt.Sprintf("its source_profile %q", base.Profile)}, role, p.value("external_id")), nil
	case role != "":
		return source{}, fmt.Errorf("%s has role_arn without source_profile or web_identity_token_file; credential_source is not supported: use role= in --blobs", file.name)
	case p.value("aws_access_key_id", "aws_secret_access_key", "sso_role_name", "sso_session", "sso_start_url", "credential_process") != "":
		return file, nil
	}
	m := &credentials.IAM{Client: &http.Client{Timeout: 5 * time.Second}}
	switch {
	case env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "", env("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "":
		return source{m, "the container's role"}, nil
	case strings.EqualFold(env("AWS_EC2_METADATA_DISABLED"), "true"):
		return source{&credentials.Static{}, ""}, nil
	}
	m.Endpoint = env("AWS_EC2_METADATA_SERVICE_ENDPOINT")
	return source{m, ""}, nil
}

// stsEndpoint returns the URL of AWS's token service, "" for Amazon's.
func stsEndpoint() string {
	return cmp.Or(os.Getenv("AWS_ENDPOINT_URL_STS"), os.Getenv("AWS_ENDPOINT_URL"))
}

// assumedRole provides the credentials of a role that the identity assumes.
type assumedRole struct {
	credentials.Expiry
	base    *credentials.Credentials
	service credentials.STSAssumeRole
}

func (s s3Settings) assume(base credentials.Provider, arn, externalID string) source {
	region := cmp.Or(s.region, "us-east-1")
	at := cmp.Or(stsEndpoint(), "https://sts."+region+".amazonaws.com")
	if strings.HasPrefix(region, "cn-") && stsEndpoint() == "" {
		at += ".cn"
	}
	options := credentials.STSAssumeRoleOptions{Location: region, RoleARN: arn, RoleSessionName: "otograph", ExternalID: externalID}
	role := &assumedRole{base: credentials.New(base), service: credentials.STSAssumeRole{STSEndpoint: at, Options: options}}
	return source{role, "the role " + arn}
}

// RetrieveWithCredContext implements credentials.Provider.
func (r *assumedRole) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	v, err := r.base.GetWithContext(cc)
	if err != nil {
		return v, err
	}
	o := &r.service.Options
	o.AccessKey, o.SecretKey, o.SessionToken = v.AccessKeyID, v.SecretAccessKey, v.SessionToken
	if v, err = r.service.RetrieveWithCredContext(cc); err == nil {
		r.SetExpiration(v.Expiration, credentials.DefaultExpiryWindow)
	}
	return v, err
}

// Retrieve implements credentials.Provider.
func (r *assumedRole) Retrieve() (credentials.Value, error) { return r.RetrieveWithCredContext(nil) }
