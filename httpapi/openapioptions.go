package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/otograph/otograph/spec"
)

// addOptions adds the table of options to the document's schemas Options and
// EffectiveOptions, which list their fields nowhere else.
func addOptions(doc *yaml.Node) error {
	var given, effective, required strings.Builder
	for _, row := range spec.Table() {
		fmt.Fprintf(&given, "%s: %s\n", row.Name, optionSchema(row))
		fmt.Fprintf(&effective, "%s: %s\n", row.Name, optionSchema(row))
		if !row.Unlisted() {
			fmt.Fprintf(&required, "- %s\n", row.Name)
		}
	}
	for _, part := range []struct{ schema, key, text string }{
		{"Options", "properties", given.String()},
		{"EffectiveOptions", "required", required.String()},
		{"EffectiveOptions", "properties", effective.String()},
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

// optionSchema returns the JSON schema of an option's value, in flow style.
func optionSchema(row spec.Option) string {
	kind := map[spec.Kind]string{
		spec.KindBool: "boolean", spec.KindInt: "integer", spec.KindFloat: "number", spec.KindString: "string", spec.KindStrings: "array",
	}[row.Kind]
	var b strings.Builder
	put := func(key string, value any) {
		text, _ := json.Marshal(value) // JSON is YAML; texts and numbers always marshal
		fmt.Fprintf(&b, ", %s: %s", key, text)
	}
	if row.Nullable {
		fmt.Fprintf(&b, `{type: [%s, "null"], default: null`, kind)
	} else {
		fmt.Fprintf(&b, "{type: %s", kind)
	}
	if row.Default != nil {
		put("default", row.Default)
	}
	if row.Enum != nil {
		put("enum", row.Enum)
	}
	switch row.Kind {
	case spec.KindInt, spec.KindFloat:
		put("minimum", row.Min)
		put("maximum", row.Max)
	case spec.KindString:
		if row.Max != nil {
			put("maxLength", row.Max)
		}
	case spec.KindStrings:
		if row.Items > 0 {
			put("maxItems", row.Items)
		}
		if row.Max != nil {
			fmt.Fprintf(&b, ", items: {type: string, minLength: 1, maxLength: %v}", *row.Max)
		} else {
			b.WriteString(", items: {type: string}")
		}
	case spec.KindBool:
	}
	put("description", row.Help)
	return b.String() + "}"
}
