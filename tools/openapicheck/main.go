// Command openapicheck checks a service's requests and responses against its
// OpenAPI document. It reads JSON objects, one per line, and answers each
// with a line. The first object contains the document.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// question is a line of the input: the document, a request with its response,
// or a value with the schema that describes it.
type question struct {
	Document json.RawMessage `json:",omitempty"`

	Method, Path, Query string // the path relative to the document's server
	Header              http.Header
	Body                []byte // of the request
	Allowed             bool   // the service accepted the request, so it must fit the document
	Status              int
	AnswerHeader        http.Header
	Answer              []byte

	Schema string
	Value  json.RawMessage `json:",omitempty"`
}

// verdict answers a question.
type verdict struct {
	Known bool   // the document has an operation for the method and the path
	Error string // the difference from the document, "" for none
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "openapicheck:", err)
		os.Exit(1)
	}
}

func run(r io.Reader, w io.Writer) error {
	var doc *openapi3.T
	in, out := json.NewDecoder(bufio.NewReader(r)), json.NewEncoder(w)
	for {
		var q question
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var v verdict
		var err error
		switch {
		case len(q.Document) > 0:
			if doc, err = openapi3.NewLoader().LoadFromData(q.Document); err == nil {
				err = doc.Validate(context.Background())
			}
		case doc == nil:
			return errors.New("expected the document first")
		case q.Schema != "":
			err = q.checkValue(doc)
		default:
			v.Known, err = q.check(doc)
		}
		if err != nil {
			v.Error = err.Error()
		}
		if err := out.Encode(v); err != nil {
			return err
		}
	}
}

func (q *question) checkValue(doc *openapi3.T) error {
	schema := doc.Components.Schemas[q.Schema]
	if schema == nil {
		return fmt.Errorf("the document has no schema %s", q.Schema)
	}
	var value any
	if err := json.Unmarshal(q.Value, &value); err != nil {
		return err
	}
	return schema.Value.VisitJSON(value)
}

// check compares a request and its response with the document; known is false
// if the document has no operation for them.
func (q *question) check(doc *openapi3.T) (known bool, err error) {
	route, params := find(doc, q.Method, q.Path)
	if route == nil {
		return false, nil
	}
	request := func() (*openapi3filter.RequestValidationInput, error) {
		req, err := http.NewRequest(q.Method, "http://service", bytes.NewReader(q.Body))
		if err != nil {
			return nil, err
		}
		req.Header, req.URL.Path, req.URL.RawQuery = q.Header, q.Path, q.Query // a path may contain bytes that URLs cannot
		return &openapi3filter.RequestValidationInput{
			Request: req, PathParams: params, Route: route,
			Options: &openapi3filter.Options{MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
		}, nil
	}
	asked, err := request()
	if err != nil {
		return true, err
	}
	kind, _, _ := strings.Cut(q.AnswerHeader.Get("Content-Type"), ";")
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: asked,
		Status:                 q.Status, Header: q.AnswerHeader, Body: io.NopCloser(bytes.NewReader(q.Answer)),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, MultiError: true,
			ExcludeResponseBody: q.Method == http.MethodHead || kind == "text/vtt" || kind == "application/x-subrip" || kind == "text/event-stream",
		},
	})
	if err != nil || !q.Allowed {
		return true, err
	}
	if asked, err = request(); err != nil {
		return true, err
	}
	return true, openapi3filter.ValidateRequest(context.Background(), asked)
}

// find returns a request's operation in the document, nil if there is none.
func find(doc *openapi3.T, method, path string) (*routers.Route, map[string]string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	got := strings.Split(path, "/")
	var best *routers.Route
	var bestParams map[string]string
	for template, item := range doc.Paths.Map() {
		params, ok := match(strings.Split(template, "/"), got)
		if op := item.GetOperation(method); ok && op != nil && (best == nil || len(params) < len(bestParams)) {
			best = &routers.Route{Spec: doc, Path: template, PathItem: item, Method: method, Operation: op}
			bestParams = params
		}
	}
	return best, bestParams
}

// match compares a path with the parts of a template and returns its parameters.
func match(want, got []string) (params map[string]string, ok bool) {
	if len(want) != len(got) {
		return nil, false
	}
	params = map[string]string{}
	for i := range want {
		if strings.HasPrefix(want[i], "{") {
			params[strings.Trim(want[i], "{}")] = got[i]
		} else if want[i] != got[i] {
			return nil, false
		}
	}
	return params, true
}
