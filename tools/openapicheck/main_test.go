package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const document = `{"openapi": "3.1.0", "info": {"title": "t", "version": "1"},
	"paths": {"/things/{id}": {"get": {"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
		{"name": "n", "in": "query", "schema": {"type": "integer"}}],
		"responses": {"200": {"description": "ok", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}}}}},
	"components": {"schemas": {"Thing": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}}}}}`

// TestVerdicts checks responses and values that fit the document, and some that
// do not.
func TestVerdicts(t *testing.T) {
	header := http.Header{"Content-Type": {"application/json"}}
	get := func(path, query string, status int, answer string) question {
		return question{Method: http.MethodGet, Path: path, Query: query, Allowed: true, Status: status, AnswerHeader: header, Answer: []byte(answer)}
	}
	cases := []struct {
		question question
		known    bool
		says     string
	}{
		{get("/things/a", "n=3", 200, `{"size": 1}`), true, ""},
		{get("/things/a", "n=x", 200, `{"size": 1}`), true, "an invalid integer"},
		{get("/things/a", "", 200, `{"size": "x"}`), true, "got string, want integer"},
		{get("/things/a", "", 404, `{}`), true, "status is not supported"},
		{get("/others", "", 200, `{}`), false, ""},
		{question{Schema: "Thing", Value: json.RawMessage(`{"size": 2}`)}, false, ""},
		{question{Schema: "Thing", Value: json.RawMessage(`{}`)}, false, `property "size" is missing`},
		{question{Schema: "Nothing", Value: json.RawMessage(`{}`)}, false, "no schema Nothing"},
		{question{Document: json.RawMessage(`{"openapi": "3.1.0"}`)}, false, "info"},
	}
	var in, out strings.Builder
	questions := json.NewEncoder(&in)
	require.NoError(t, questions.Encode(question{Document: json.RawMessage(document)}))
	for _, c := range cases {
		require.NoError(t, questions.Encode(c.question))
	}
	require.NoError(t, run(strings.NewReader(in.String()), &out))
	answers := json.NewDecoder(strings.NewReader(out.String()))
	var v verdict
	require.NoError(t, answers.Decode(&v))
	assert.Equal(t, verdict{}, v)
	for _, c := range cases {
		var v verdict
		require.NoError(t, answers.Decode(&v))
		assert.Equal(t, c.known, v.Known, "%+v", c.question)
		if c.says == "" {
			assert.Empty(t, v.Error)
		} else {
			assert.Contains(t, v.Error, c.says)
		}
	}
	assert.ErrorContains(t, run(strings.NewReader(`{"Schema": "Thing"}`), &out), "expected the document first")
}
