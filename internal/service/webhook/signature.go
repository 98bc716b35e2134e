package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers returns the headers of one delivery: the specified X-Signature over
// the raw body, and the three of Standard Webhooks, whose signature covers id
// and time too. Without a secret nothing is signed. If the secret is "whsec_"
// followed by Base64, webhook-signature uses the decoded bytes, as Standard
// Webhooks defines; X-Signature always uses the secret's bytes as they are.
func Headers(id, secret string, body []byte, now time.Time) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "Otograph-Callback/1")
	stamp := strconv.FormatInt(now.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	if secret == "" {
		return h
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	h.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			key = raw
		}
	}
	mac = hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, stamp)
	mac.Write(body)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return h
}
