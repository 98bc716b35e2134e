package fetch

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNoRedirectFromHTTPSToHTTP checks that a redirect cannot remove the
// encryption. The other behavior of a Fetcher is tested in models/library.
func TestNoRedirectFromHTTPSToHTTP(t *testing.T) {
	req := httptest.NewRequest(http.MethodGet, "http://b.example/x", nil)
	via := httptest.NewRequest(http.MethodGet, "https://a.example/x", nil)
	assert.ErrorIs(t, checkRedirect(req, []*http.Request{via}), errRedirect)
	assert.NoError(t, checkRedirect(via, []*http.Request{via}))
}
