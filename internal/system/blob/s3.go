package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"
)

// s3 is a Bucket in an S3-compatible store, with the caller's context.
type s3 struct {
	core      *minio.Core
	bucket    string
	prefix    string // of all keys
	options   minio.PutObjectOptions
	transport *http.Transport
}

// attempts is how often a request is sent if it fails for a temporary reason,
// as in AWS's own clients.
const attempts = 3

// openS3 also returns the URL of the store, "" for Amazon's.
func openS3(source string) (*s3, string, error) {
	u, err := url.Parse(source)
	if err != nil {
		return nil, "", err
	}
	if u.Host == "" {
		return nil, "", errors.New("the bucket's name is missing: s3://bucket?region=…")
	}
	settings, err := parseS3Settings(u.Query())
	if err != nil {
		return nil, "", err
	}
	b := &s3{bucket: u.Host, options: minio.PutObjectOptions{DisableContentSha256: true}} // each part has a checksum
	if b.options.ServerSideEncryption, err = settings.encryption(); err != nil {
		return nil, "", err
	}
	if prefix := strings.Trim(u.Path, "/"); prefix != "" {
		b.prefix = prefix + "/"
	}
	return b, settings.endpoint, b.connect(settings)
}

// connect makes the client; it sends nothing.
func (b *s3) connect(settings s3Settings) error {
	at, err := settings.address()
	if err != nil {
		return err
	}
	secure := at.Scheme == "https"
	if b.transport, err = minio.DefaultTransport(secure); err != nil {
		return err
	}
	if secure && settings.authorities != "" {
		if b.transport.TLSClientConfig, err = trusting(settings.authorities); err != nil {
			return err
		}
	}
	provider, err := settings.provider()
	if err != nil {
		return err
	}
	b.core, err = minio.NewCore(at.Host, &minio.Options{
		Creds: provider, Secure: secure, Transport: b.transport, Region: settings.region,
		BucketLookup: settings.lookup(at, b.bucket), MaxRetries: attempts,
	})
	return err
}

// lookup returns where requests contain the bucket's name: in the host's name,
// as Amazon requires, or in the path.
func (s s3Settings) lookup(at *url.URL, bucket string) minio.BucketLookupType {
	_, err := netip.ParseAddr(at.Hostname())
	switch {
	case s.pathStyle, err == nil:
		return minio.BucketLookupPath
	case s.endpoint == "", strings.Contains(bucket, "."):
		return minio.BucketLookupAuto
	}
	return minio.BucketLookupDNS
}

// encryption returns how the store shall encrypt files, nil for its default.
func (s s3Settings) encryption() (encrypt.ServerSide, error) {
	switch {
	case s.encrypt == "" && s.key == "":
		return nil, nil
	case strings.EqualFold(s.encrypt, "AES256") && s.key == "":
		return encrypt.NewSSE(), nil
	case strings.EqualFold(s.encrypt, "aws:kms"):
		return encrypt.NewSSEKMS(s.key, nil)
	}
	return nil, fmt.Errorf("ssetype %q with kmskeyid %q is not supported: want AES256, or aws:kms with or without a key", s.encrypt, s.key)
}

// trusting returns a configuration that trusts the certificate authorities in
// file (PEM) instead of the system's.
func trusting(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file) //nolint:gosec // named by the operator
	if err != nil {
		return nil, fmt.Errorf("AWS_CA_BUNDLE: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("AWS_CA_BUNDLE: %s contains no certificate in PEM form", file)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, nil
}

// String describes the bucket.
func (b *s3) String() string { return strings.TrimSuffix("s3://"+b.bucket+"/"+b.prefix, "/") }

// Close implements Bucket.
func (b *s3) Close() error {
	b.transport.CloseIdleConnections()
	return nil
}

// s3Code returns the code of a store's answer, "" if err is none.
func s3Code(err error) string {
	answer, _ := errors.AsType[minio.ErrorResponse](err)
	return answer.Code
}

// answered adds the code of a store's answer to its text.
func answered(err error) error {
	switch code := s3Code(err); code {
	case "":
		return err
	case minio.PreconditionFailed, "ConditionalRequestConflict":
		return fmt.Errorf("%w: %w", fs.ErrExist, err)
	default:
		return fmt.Errorf("%s: %w", code, err)
	}
}

// Open implements Bucket.
func (b *s3) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	var options minio.GetObjectOptions
	if offset > 0 {
		if err := options.SetRange(offset, 0); err != nil {
			return nil, err
		}
	}
	body, _, _, err := b.core.GetObject(ctx, b.bucket, b.prefix+key, options)
	return body, answered(err)
}

// Delete implements Bucket.
func (b *s3) Delete(ctx context.Context, key string) error {
	return answered(b.core.RemoveObject(ctx, b.bucket, b.prefix+key, minio.RemoveObjectOptions{}))
}

// List implements Bucket.
func (b *s3) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for o := range b.core.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}) {
			if o.Err != nil {
				yield(Object{}, answered(o.Err))
				return
			}
			if !yield(Object{Key: strings.TrimPrefix(o.Key, b.prefix), Size: o.Size, ModTime: o.LastModified}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil { // minio-go ends the list without an error
			yield(Object{}, err)
		}
	}
}

// partSize is the size of the parts of a large file in bytes, S3's minimum. Two
// of them are in memory: one is filled while the other is sent.
const partSize = 5 << 20

// s3Upload is an unfinished file. A file of one part is sent whole at the end.
type s3Upload struct {
	*s3
	ctx   context.Context
	key   string
	fresh bool
	id    string // of the upload in parts; "" before the second part
	parts []minio.CompletePart
	next  []byte        // the part to send next
	spare []byte        // the part that is being sent
	sent  chan sentPart // holds the outcome of spare; nil if nothing is being sent
}

type sentPart struct {
	minio.ObjectPart
	err error
}

// Create implements Bucket.
func (b *s3) Create(ctx context.Context, key string, fresh bool) (Upload, error) {
	return &s3Upload{s3: b, ctx: ctx, key: b.prefix + key, fresh: fresh}, nil
}

// Write implements io.Writer.
func (u *s3Upload) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if len(u.next) == partSize {
			if err := u.send(); err != nil {
				return n, err
			}
		}
		k := min(len(p)-n, partSize-len(u.next))
		u.next = append(u.next, p[n:n+k]...)
		n += k
	}
	return n, nil
}

// send begins to send the next part when the previous one has been received.
func (u *s3Upload) send() (err error) {
	if u.id == "" {
		if u.id, err = u.core.NewMultipartUpload(u.ctx, u.bucket, u.key, u.options); err != nil {
			return answered(err)
		}
	}
	if err := u.wait(); err != nil {
		return err
	}
	u.next, u.spare = u.spare[:0], u.next
	u.sent = make(chan sentPart, 1)
	go func(to chan<- sentPart, part []byte, number int) {
		options := minio.PutObjectPartOptions{Sha256Hex: sha256Hex(part), DisableContentSha256: true}
		done, err := u.core.PutObjectPart(u.ctx, u.bucket, u.key, u.id, number, bytes.NewReader(part), int64(len(part)), options)
		to <- sentPart{done, answered(err)}
	}(u.sent, u.spare, len(u.parts)+1)
	return nil
}

func (u *s3Upload) wait() error {
	if u.sent == nil {
		return nil
	}
	part := <-u.sent
	u.sent = nil
	u.parts = append(u.parts, minio.CompletePart{PartNumber: part.PartNumber, ETag: part.ETag})
	return part.err
}

// Commit implements Upload.
func (u *s3Upload) Commit() error {
	options := u.options
	if u.fresh {
		options.SetMatchETagExcept("*")
	}
	if u.id == "" {
		_, err := u.core.PutObject(u.ctx, u.bucket, u.key, bytes.NewReader(u.next), int64(len(u.next)), "", sha256Hex(u.next), options)
		return answered(err)
	}
	if err := u.send(); err != nil {
		return err
	}
	if err := u.wait(); err != nil {
		return err
	}
	_, err := u.core.CompleteMultipartUpload(u.ctx, u.bucket, u.key, u.id, u.parts, options)
	return answered(err)
}

// Abort implements Upload.
func (u *s3Upload) Abort(ctx context.Context) {
	_ = u.wait() // canceled with the upload's context
	if u.id != "" {
		_ = u.core.AbortMultipartUpload(ctx, u.bucket, u.key, u.id)
	}
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
