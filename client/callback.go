package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Callback is the notification that a task is final.
type Callback struct {
	TaskID       string     `json:"task_id"`
	Status       Status     `json:"status"`
	CreatedAt    time.Time  `json:"created_at"`
	FinishedAt   *time.Time `json:"finished_at"`
	ErrorMessage *string    `json:"error_message"`
}

// ErrSignature is returned for a callback that was not signed with the secret,
// or whose timestamp differs from the clock by more than Tolerance.
var ErrSignature = errors.New("callback signature does not fit")

// Tolerance is the permitted difference of a callback's time and the clock.
const Tolerance = 5 * time.Minute

// maxCallback bounds the body of a callback, in bytes.
const maxCallback = 64 << 10

// ReadCallback reads and verifies a callback. Any of the secrets may have
// signed it: pass the old and the new one during a rotation. It checks
// webhook-signature, which covers the message's id and time: a copied callback
// cannot be replayed later. A receiver that must act once stores the ids
// (header webhook-id) for Tolerance. Without secrets nothing is verified.
func ReadCallback(r *http.Request, secrets ...string) (Callback, error) {
	return readCallback(r, time.Now(), secrets)
}

func readCallback(r *http.Request, now time.Time, secrets []string) (Callback, error) {
	var c Callback
	body, err := io.ReadAll(io.LimitReader(r.Body, maxCallback+1))
	if err != nil {
		return c, fmt.Errorf("client: callback: %w", err)
	}
	if len(body) > maxCallback {
		return c, fmt.Errorf("client: callback is longer than %d bytes", maxCallback)
	}
	if len(secrets) > 0 {
		if err := verify(r.Header, body, now, secrets); err != nil {
			return c, err
		}
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return c, fmt.Errorf("client: callback: %w", err)
	}
	return c, nil
}

func verify(h http.Header, body []byte, now time.Time, secrets []string) error {
	id, stamp := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || id == "" {
		return fmt.Errorf("%w: the headers webhook-id and webhook-timestamp are missing or malformed", ErrSignature)
	}
	if age := now.Sub(time.Unix(seconds, 0)).Abs(); age > Tolerance {
		return fmt.Errorf("%w: the timestamp is %s off", ErrSignature, age.Round(time.Second))
	}
	signed := id + "." + stamp + "." + string(body)
	for _, secret := range secrets {
		for given := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
			encoded, ok := strings.CutPrefix(given, "v1,")
			got, err := base64.StdEncoding.DecodeString(encoded)
			if ok && err == nil && hmac.Equal(got, sum(webhookKey(secret), signed)) {
				return verifyBody(h, body, secret)
			}
		}
	}
	return fmt.Errorf("%w: webhook-signature matches no secret", ErrSignature)
}

// verifyBody checks the specification's signature, which covers only the body.
func verifyBody(h http.Header, body []byte, secret string) error {
	got, err := hex.DecodeString(strings.TrimPrefix(h.Get("X-Signature"), "sha256="))
	if err != nil || !hmac.Equal(got, sum([]byte(secret), string(body))) {
		return fmt.Errorf("%w: X-Signature does not match", ErrSignature)
	}
	return nil
}

// webhookKey returns the key of a secret as Standard Webhooks defines it: the
// decoded Base64 after "whsec_", or else the bytes of the text.
func webhookKey(secret string) []byte {
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if raw, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			return raw
		}
	}
	return []byte(secret)
}

func sum(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
