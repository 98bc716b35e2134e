package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/minio/minio-go/v7"
)

// ProbePrefix is the prefix of the keys that Probe writes; 26 letters and
// digits follow. A file remains if the process is killed meanwhile.
const ProbePrefix = "probe/"

// Check requests the store's identity object, which need not exist, to check
// that the store can be read. The error is one line with instructions.
func (s *Store) Check(ctx context.Context) error {
	r, err := s.Open(ctx, identityKey)
	switch {
	case err == nil:
		return r.Close()
	case errors.Is(err, ErrNotFound):
		return nil
	}
	return s.explain(err)
}

// Probe writes a small file, reads it back and deletes it, which shows that the
// store can be written and read.
func (s *Store) Probe(ctx context.Context) error {
	if err := s.Check(ctx); err != nil {
		return err
	}
	key := ProbePrefix + strings.ToLower(rand.Text())
	if err := s.Put(ctx, key, strings.NewReader(key)); err != nil {
		return s.explain(err)
	}
	r, err := s.Open(ctx, key)
	if err != nil {
		return s.explain(err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, int64(len(key))+1))
	if err != nil {
		return s.explain(err)
	}
	if string(text) != key {
		return fmt.Errorf("file store %s: %w: %s was written and reads %.60q", s.name, ErrUnavailable, key, text)
	}
	return s.explain(s.Delete(ctx, key))
}

// explain turns an error of an S3 store into a line with instructions.
func (s *Store) explain(err error) error {
	if err == nil || s.Folder() {
		return err
	}
	say := func(format string, args ...any) error {
		return fmt.Errorf("file store %s: %w: %s", s.name, ErrUnavailable, fmt.Sprintf(format, args...))
	}
	at := "AWS"
	if s.endpoint != "" {
		at = s.endpoint
	}
	if problem, ok := errors.AsType[credentialsError](err); ok {
		return say("%v", problem)
	}
	switch code := s3Code(err); code {
	case minio.NoSuchBucket:
		return say("there is no such bucket at %s: create it, or correct --blobs", at)
	case minio.InvalidAccessKeyID, minio.SignatureDoesNotMatch, "AuthFailure", "InvalidToken", "ExpiredToken":
		return say("%s refused the credentials (%s): correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", at, code)
	case minio.AccessDenied, "Forbidden", minio.AllAccessDisabled:
		return say("%s denied the access (%s): the credentials need to read, write, list, and delete objects of the bucket", at, code)
	}
	var dns *net.DNSError
	var network *net.OpError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return say("%s refused the connection: check that the store is running and that endpoint= is correct", at)
	case errors.As(err, &dns):
		return say("%s has no address: correct endpoint= in --blobs", dns.Name)
	case errors.As(err, &network):
		return say("%s cannot be reached: %v", at, network.Err)
	case strings.Contains(err.Error(), "no answer within"), errors.Is(err, context.DeadlineExceeded):
		return say("%s does not answer", at)
	}
	return err
}
