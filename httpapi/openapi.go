// Package httpapi holds the contract of the service's HTTP interface:
// openapi.yaml, written by hand, with the options of package spec.
//
// The endpoints are in internal/service/httpserver, whose tests check every
// response against the contract; programs mount them through package service.
package httpapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/otograph/otograph/spec"
)

//go:embed openapi.yaml
var openapiYAML []byte

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
// rendered once and shared: callers must not change it.
func Describe(base string) (Document, error) {
	once, _ := described.LoadOrStore(base, sync.OnceValues(func() (Document, error) { return describe(base) }))
	return once.(func() (Document, error))()
}

func describe(base string) (d Document, err error) {
	doc, err := parseOpenAPI(openapiYAML)
	if err != nil {
		return d, err
	}
	if err := addOptions(doc); err != nil {
		return d, err
	}
	if servers := child(doc, "servers"); base != "" && servers != nil && len(servers.Content) == 1 {
		child(servers.Content[0], "url").Value = base
	}
	var values any
	if err := doc.Decode(&values); err != nil {
		return d, fmt.Errorf("openapi.yaml: %w", err)
	}
	if d.JSON, err = json.Marshal(values); err != nil {
		return d, fmt.Errorf("openapi.yaml: %w", err)
	}
	d.Queries = map[string][]string{}
	for _, e := range (docs{root: doc}).endpoints() {
		d.Queries[e.Path] = append([]string{}, d.Queries[e.Path]...)
		for _, p := range (docs{root: doc}).parameterNodes(e) {
			if text(p, "in") == "query" {
				d.Queries[e.Path] = append(d.Queries[e.Path], text(p, "name"))
			}
		}
	}
	d.HTML, d.PagePolicy, err = renderDocs(doc, base)
	return d, err
}

func parseOpenAPI(source []byte) (*yaml.Node, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(source, &root); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	if root.Kind != yaml.DocumentNode || len(root.Content) != 1 {
		return nil, fmt.Errorf("openapi.yaml: expected one document")
	}
	return root.Content[0], nil
}

// addOptions adds the table of options to the document's schemas Options and
// EffectiveOptions, which list their fields nowhere else.
func addOptions(doc *yaml.Node) error {
	var properties, required strings.Builder
	for _, row := range spec.Table() {
		schema, err := json.Marshal(optionSchema(row)) // JSON is YAML
		if err != nil {
			return err
		}
		fmt.Fprintf(&properties, "%s: %s\n", row.Name, schema)
		if !row.Unlisted() {
			fmt.Fprintf(&required, "- %s\n", row.Name)
		}
	}
	for _, part := range []struct{ schema, key, text string }{
		{"Options", "properties", properties.String()},
		{"EffectiveOptions", "required", required.String()},
		{"EffectiveOptions", "properties", properties.String()},
	} {
		schema := child(doc, "components", "schemas", part.schema)
		value, err := parseOpenAPI([]byte(part.text))
		if err != nil || schema == nil {
			return fmt.Errorf("openapi.yaml: schema %s: %w", part.schema, err)
		}
		schema.Content = append(schema.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: part.key}, value)
	}
	return nil
}

// optionSchema returns the JSON schema of an option's value.
func optionSchema(row spec.Option) map[string]any {
	kind := map[spec.Kind]string{
		spec.KindBool: "boolean", spec.KindInt: "integer", spec.KindFloat: "number", spec.KindString: "string", spec.KindStrings: "array",
	}[row.Kind]
	schema := map[string]any{"type": kind, "description": row.Help}
	if row.Nullable {
		schema["type"], schema["default"] = []string{kind, "null"}, nil
	}
	if row.Default != nil {
		schema["default"] = row.Default
	}
	if row.Enum != nil {
		schema["enum"] = row.Enum
	}
	switch row.Kind {
	case spec.KindInt, spec.KindFloat:
		schema["minimum"], schema["maximum"] = row.Min, row.Max
	case spec.KindString:
		if row.Max != nil {
			schema["maxLength"] = row.Max
		}
	case spec.KindStrings:
		items := map[string]any{"type": "string"}
		if row.Max != nil {
			items["minLength"], items["maxLength"] = 1, row.Max
		}
		if schema["items"] = items; row.Items > 0 {
			schema["maxItems"] = row.Items
		}
	case spec.KindBool:
	}
	return schema
}
