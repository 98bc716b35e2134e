package httpapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

//go:embed openapi.yaml
var openapiYAML []byte

// Document is the OpenAPI 3.1 document: openapi.yaml with the options of package
// spec.
type Document struct {
	JSON       []byte // the document, in the order of openapi.yaml
	HTML       []byte // its readable form: one page without scripts
	PagePolicy string // the Content-Security-Policy of the page
}

// Describe returns the document for endpoints below base; "" is "/v1".
func Describe(base string) (d Document, err error) {
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
	var buf bytes.Buffer
	if err := writeJSONNode(&buf, doc); err != nil {
		return d, fmt.Errorf("openapi.yaml: %w", err)
	}
	d.JSON = buf.Bytes()
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

// writeJSONNode writes a YAML node as JSON and keeps the order of its keys.
func writeJSONNode(buf *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		buf.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				buf.WriteByte(',')
			}
			key, _ := json.Marshal(n.Content[i].Value)
			buf.Write(append(key, ':'))
			if err := writeJSONNode(buf, n.Content[i+1]); err != nil {
				return err
			}
		}
		buf.WriteByte('}')
	case yaml.SequenceNode:
		buf.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				buf.WriteByte(',')
			}
			if err := writeJSONNode(buf, c); err != nil {
				return err
			}
		}
		buf.WriteByte(']')
	case yaml.ScalarNode:
		text := []byte(n.Value)
		if !slices.Contains([]string{"!!int", "!!float", "!!bool", "!!null"}, n.Tag) {
			text, _ = json.Marshal(n.Value) // texts always marshal
		}
		if !json.Valid(text) {
			return fmt.Errorf("line %d: %s is not a value of JSON", n.Line, text)
		}
		buf.Write(text)
	default:
		return fmt.Errorf("line %d: anchors and aliases are not used in this document", n.Line)
	}
	return nil
}
