package httpserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/httpapi"
	"github.com/otograph/otograph/internal/test/outside"
)

// exchange is a question to tools/openapicheck: a request with its response, or
// a value that a schema of the document describes.
type exchange struct {
	Document            json.RawMessage `json:",omitempty"`
	Method, Path, Query string
	Header              http.Header
	Body                []byte
	Allowed             bool
	Status              int
	AnswerHeader        http.Header
	Answer              []byte
	Schema              string
	Value               json.RawMessage `json:",omitempty"`
}

// verdict is the reply of tools/openapicheck.
type verdict struct {
	Known bool
	Error string
}

// checker is the running tools/openapicheck; it ends with this process.
type checker struct {
	mu  sync.Mutex
	in  *json.Encoder
	out *json.Decoder
}

var contract = sync.OnceValues(func() (*checker, error) {
	document, err := httpapi.Describe("")
	if err != nil {
		return nil, err
	}
	p, err := outside.Start("openapicheck")
	if err != nil {
		return nil, err
	}
	c := &checker{in: json.NewEncoder(p.In), out: json.NewDecoder(p.Out)}
	v, err := c.ask(exchange{Document: document.JSON})
	if err == nil && v.Error != "" {
		err = errors.New(v.Error)
	}
	return c, err
})

func (c *checker) ask(e exchange) (v verdict, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.in.Encode(e); err != nil {
		return v, err
	}
	return v, c.out.Decode(&v)
}

// askContract checks an exchange against the document and fails the test on a
// difference. It reports whether the document has the request.
func askContract(t testing.TB, e exchange) (known bool) {
	t.Helper()
	c, err := contract()
	require.NoError(t, err)
	v, err := c.ask(e)
	require.NoError(t, err)
	require.Empty(t, v.Error, "%s %s %s: %d %s", e.Method, e.Path, e.Schema, e.Status, e.Answer)
	return v.Known
}

// checkContract fails the test if a response differs from the document, or if
// the document forbids an accepted request (allowed): the document must allow
// all requests that the service accepts.
func checkContract(t testing.TB, req *http.Request, body []byte, allowed bool, a answer) {
	t.Helper()
	path, ours := strings.CutPrefix(req.URL.Path, "/v1/")
	known := ours && a.status != http.StatusMethodNotAllowed && askContract(t, exchange{
		Method: req.Method, Path: "/" + path, Query: req.URL.RawQuery, Header: req.Header, Body: body, Allowed: allowed,
		Status: a.status, AnswerHeader: a.header, Answer: a.body,
	})
	switch {
	case known, a.status < 400 || req.Method == http.MethodHead:
	case (&Server{cfg: Config{BasePath: "/v1"}}).openAIPath(req.URL.Path):
		openAIFailure(t, a)
	case path == "listen":
		deepgramFailure(t, a)
	default:
		m := a.object(t)
		require.Len(t, m, 2, "%s", a.body)
		require.NotEmpty(t, m["error"])
		require.NotEmpty(t, m["error_code"])
		require.Equal(t, "application/json", a.header.Get("Content-Type"))
	}
}

// document is the part of the OpenAPI document that tests read.
type document struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct{ Schemas map[string]schema }
}

// schema describes a value.
type schema struct {
	Type        any
	Description string
	Properties  map[string]schema
	Items       *schema
	Required    []string
	Enum        []any
	Default     any
	Minimum     *float64
	Maximum     *float64
	MaxLength   int
	MaxItems    int
}

func readDocument(t *testing.T) (doc document) {
	t.Helper()
	document, err := httpapi.Describe("")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(document.JSON, &doc))
	return doc
}
