package blob

import (
	"net/url"
	"os"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestS3Addresses(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", "/nowhere")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
	for query, want := range map[string]struct {
		address string
		lookup  minio.BucketLookupType
	}{
		"":                               {"https://s3.amazonaws.com", minio.BucketLookupAuto},
		"use_path_style=true":            {"https://s3.amazonaws.com", minio.BucketLookupPath},
		"endpoint=https://s3.example":    {"https://s3.example", minio.BucketLookupDNS},
		"endpoint=s3.example:9000":       {"https://s3.example:9000", minio.BucketLookupDNS},
		"endpoint=http://s3.example":     {"http://s3.example", minio.BucketLookupDNS},
		"endpoint=http://127.0.0.1:9000": {"http://127.0.0.1:9000", minio.BucketLookupPath},
		"endpoint=http://s3.example&use_path_style=true": {"http://s3.example", minio.BucketLookupPath},
	} {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		settings, err := parseS3Settings(values)
		require.NoError(t, err, query)
		at, err := settings.address()
		require.NoError(t, err, query)
		assert.Equal(t, want.address, at.String(), query)
		assert.Equal(t, want.lookup, settings.lookup(at, "bucket"), query)
	}
}

// TestS3SettingsOfTheWorkingFolder checks that AWS's files are not looked for in
// the working folder if there is no home.
func TestS3SettingsOfTheWorkingFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir(".aws", 0o700))
	require.NoError(t, os.WriteFile(".aws/config", []byte("[default]\nregion = strange\n"), 0o600))
	for _, name := range []string{"HOME", "USERPROFILE", "AWS_CONFIG_FILE", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	settings, err := parseS3Settings(nil)
	require.NoError(t, err)
	assert.Empty(t, settings.region)
}
