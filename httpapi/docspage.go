package httpapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed docs.html
var docsHTML string

//go:embed docs.css
var docsCSS string

// docsEndpoint is a method of a path.
type docsEndpoint struct {
	Method, Path string
	Item, Op     *yaml.Node
}

type docsField struct {
	Name, Type, Default, Description string
	Required                         bool
}

// renderDocs renders the page of the document, without scripts and without
// requests to third parties, and its Content-Security-Policy; base is the prefix
// of the paths. The document's YAML nodes keep the order of paths, responses and
// fields.
func renderDocs(doc *yaml.Node, base string) (html []byte, policy string, err error) {
	d := docs{root: doc}
	t, err := template.New("docs").Funcs(template.FuncMap{
		"prose": prose, "text": text, "child": child, "pairs": pairs, "resolve": d.resolve,
		"typed": d.typed, "typeOf": d.typeOf, "fields": d.fields, "parameters": d.parameters,
	}).Parse(docsHTML)
	if err != nil {
		return nil, "", err
	}
	var buf bytes.Buffer
	err = t.Execute(&buf, struct {
		Doc       *yaml.Node
		Base      string
		CSS       template.CSS
		Endpoints []docsEndpoint
	}{doc, base, template.CSS(docsCSS), d.endpoints()})
	sum := sha256.Sum256([]byte(docsCSS))
	return buf.Bytes(), "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", err
}

// prose escapes a text and formats text in backquotes as code.
func prose(s string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(s, "`") {
		if i%2 == 1 {
			b.WriteString("<code>" + template.HTMLEscapeString(part) + "</code>")
		} else {
			b.WriteString(template.HTMLEscapeString(part))
		}
	}
	return template.HTML(b.String())
}

type docs struct{ root *yaml.Node }

// typed escapes a type's description and links the object that it names.
func (d docs) typed(s string) template.HTML {
	name := s[strings.LastIndexByte(s, ' ')+1:]
	if child(d.resolve(child(d.root, "components", "schemas", name)), "properties") == nil {
		return template.HTML(template.HTMLEscapeString(s))
	}
	return template.HTML(template.HTMLEscapeString(strings.TrimSuffix(s, name)) + `<a href="#schema-` + name + `">` + name + "</a>")
}

func (d docs) endpoints() (list []docsEndpoint) {
	for path, item := range pairs(child(d.root, "paths")) {
		for method, op := range pairs(item) {
			if method != "parameters" {
				list = append(list, docsEndpoint{strings.ToUpper(method), path, item, op})
			}
		}
	}
	for method, op := range pairs(child(d.root, "webhooks", "taskFinished")) {
		list = append(list, docsEndpoint{strings.ToUpper(method), "your callback_url", nil, op})
	}
	return list
}

func (d docs) parameters(e docsEndpoint) (list []docsField) {
	for _, p := range d.parameterNodes(e) {
		list = append(list, docsField{
			Name: text(p, "name"), Type: d.typeOf(child(p, "schema")) + " in " + text(p, "in"),
			Required: text(p, "required") == "true", Default: text(child(p, "schema"), "default"), Description: text(p, "description"),
		})
	}
	return list
}

// parameterNodes returns the parameters of an endpoint.
func (d docs) parameterNodes(e docsEndpoint) (list []*yaml.Node) {
	for _, from := range []*yaml.Node{child(e.Item, "parameters"), child(e.Op, "parameters")} {
		if from != nil {
			for _, p := range from.Content {
				list = append(list, d.resolve(p))
			}
		}
	}
	return list
}

func (d docs) fields(schema *yaml.Node) []docsField {
	schema = d.resolve(schema)
	required := items(child(schema, "required"))
	var out []docsField
	for name, p := range pairs(child(schema, "properties")) {
		out = append(out, docsField{
			Name: name, Type: d.typeOf(p), Required: slices.Contains(required, name),
			Default: text(d.resolve(p), "default"), Description: text(d.resolve(p), "description"),
		})
	}
	return out
}

// typeOf describes a schema in a few words.
func (d docs) typeOf(schema *yaml.Node) string {
	if schema == nil {
		return ""
	}
	if ref := text(schema, "$ref"); ref != "" {
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		if target := d.resolve(schema); child(target, "properties") != nil {
			return name
		}
		return d.typeOf(d.resolve(schema))
	}
	out := text(schema, "type") + strings.Join(items(child(schema, "type")), " or ")
	if item := child(schema, "items"); item != nil {
		out = strings.Replace(out, "array", "array of "+d.typeOf(item), 1)
	}
	if values := items(child(schema, "enum")); len(values) > 0 {
		out += ": " + strings.Join(values, ", ")
	}
	if c := text(schema, "const"); c != "" {
		out += ": " + c
	}
	low, high := text(schema, "minimum"), text(schema, "maximum")
	switch {
	case low != "" && high != "":
		out += ", " + low + " to " + high
	case low != "":
		out += ", from " + low
	}
	return out
}

// resolve follows a local reference.
func (d docs) resolve(n *yaml.Node) *yaml.Node {
	ref := text(n, "$ref")
	if ref == "" {
		return n
	}
	return child(d.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

// child walks down a mapping; it returns nil if a key is missing.
func child(n *yaml.Node, keys ...string) *yaml.Node {
	if len(keys) == 0 {
		return n
	}
	for name, v := range pairs(n) {
		if name == keys[0] {
			return child(v, keys[1:]...)
		}
	}
	return nil
}

// text returns the scalar at a path of keys, or "".
func text(n *yaml.Node, keys ...string) string {
	if n = child(n, keys...); n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// items returns the values of a sequence of scalars.
func items(n *yaml.Node) (values []string) {
	if n != nil {
		for _, item := range n.Content {
			values = append(values, item.Value)
		}
	}
	return values
}

// pairs iterates over a mapping in the order of its source.
func pairs(n *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}
