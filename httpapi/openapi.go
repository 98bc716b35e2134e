// Package httpapi holds the contract of the service's HTTP interface:
// openapi.yaml, written by hand, and what its test generates from it and from
// the options of package spec: openapi.json and docs.html.
//
// The endpoints are in internal/service/httpserver, whose tests check every
// response against the contract; programs mount them through package service.
package httpapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"path"
	"slices"
	"sync"
)

//go:embed openapi.json
var openapiJSON []byte

//go:embed docs.html
var docsHTML []byte

// base is the prefix of the paths in both files.
const base = "/v1"

// Document is the OpenAPI 3.1 document: openapi.yaml with spec's options.
type Document struct {
	JSON       []byte // the document
	HTML       []byte // its readable form: one page without scripts
	PagePolicy string // the Content-Security-Policy of the page
	// Queries are the names of the query parameters of each path.
	Queries map[string][]string
}

// described holds the functions that return the document of a base, by base.
var described sync.Map

// Describe returns the document for endpoints below base; "" is "/v1". It is
// made once and shared: callers must not change it.
func Describe(base string) (Document, error) {
	once, _ := described.LoadOrStore(base, sync.OnceValues(func() (Document, error) { return describe(base) }))
	return once.(func() (Document, error))()
}

func describe(below string) (d Document, err error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, openapiJSON); err != nil {
		return d, fmt.Errorf("openapi.json: %w", err)
	}
	d.JSON, d.HTML = compact.Bytes(), docsHTML
	if below != "" {
		url, err := json.Marshal(map[string]string{"url": below})
		if err != nil {
			return d, err
		}
		d.JSON = bytes.Replace(d.JSON, []byte(`{"url":"`+base+`"}`), url, 1)
		d.HTML = bytes.Replace(d.HTML, []byte("<code>"+base+"</code>"), []byte("<code>"+html.EscapeString(below)+"</code>"), 1)
	}
	_, style, _ := bytes.Cut(d.HTML, []byte("<style>"))
	style, _, _ = bytes.Cut(style, []byte("</style>"))
	sum := sha256.Sum256(style)
	d.PagePolicy = "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	d.Queries, err = queries(d.JSON)
	return d, err
}

// queries returns the names of the query parameters of each path, sorted.
func queries(document []byte) (map[string][]string, error) {
	type parameter struct {
		Ref      string `json:"$ref"`
		Name, In string
	}
	type operation struct{ Parameters []parameter }
	var doc struct {
		Paths map[string]struct {
			operation              // for all methods
			Get, Post, Put, Delete operation
		}
		Components struct{ Parameters map[string]parameter }
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	names := map[string][]string{}
	for at, item := range doc.Paths {
		names[at] = []string{}
		for _, p := range slices.Concat(item.Parameters, item.Get.Parameters, item.Post.Parameters, item.Put.Parameters, item.Delete.Parameters) {
			if p.Ref != "" {
				p = doc.Components.Parameters[path.Base(p.Ref)]
			}
			if p.In == "query" {
				names[at] = append(names[at], p.Name)
			}
		}
		slices.Sort(names[at])
	}
	return names, nil
}
