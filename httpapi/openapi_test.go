package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otograph/otograph/spec"
)

// TestGenerated compares openapi.json and docs.html with openapi.yaml and the
// options of package spec. OTOGRAPH_UPDATE=1 rewrites them.
func TestGenerated(t *testing.T) {
	source, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	doc, err := parseOpenAPI(source)
	require.NoError(t, err)
	require.NoError(t, addOptions(doc))
	var values any
	require.NoError(t, doc.Decode(&values))
	document, err := json.MarshalIndent(values, "", " ")
	require.NoError(t, err)
	page, err := renderDocs(doc)
	require.NoError(t, err)
	for name, want := range map[string][]byte{"openapi.json": append(document, '\n'), "docs.html": page} {
		if os.Getenv("OTOGRAPH_UPDATE") != "" {
			require.NoError(t, os.WriteFile(name, want, 0o666))
			continue
		}
		current, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.True(t, string(want) == string(current), "%s is out of date: OTOGRAPH_UPDATE=1 go test ./httpapi", name)
	}
}

// TestDescribe checks the document below another base than the default.
func TestDescribe(t *testing.T) {
	d, err := Describe("/a&b/v1")
	require.NoError(t, err)
	var document struct{ Servers []struct{ URL string } }
	require.NoError(t, json.Unmarshal(d.JSON, &document))
	require.Len(t, document.Servers, 1)
	assert.Equal(t, "/a&b/v1", document.Servers[0].URL)
	assert.Contains(t, string(d.HTML), "<code>/a&amp;b/v1</code>")
	assert.NotContains(t, string(d.HTML), "<code>/v1</code>")
	assert.Contains(t, d.Queries["/tasks"], "page_size")
	assert.Empty(t, d.Queries["/account"])
}

func parseOpenAPI(source []byte) (*yaml.Node, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(source, &root); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	if root.Kind != yaml.DocumentNode || len(root.Content) != 1 {
		return nil, errors.New("openapi.yaml: expected one document")
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
