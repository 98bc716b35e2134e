package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
)

//go:embed schema.json
var schemaJSON []byte

// published returns OpenAI's description of its answers, with its date.
var published = sync.OnceValue(func() (p struct {
	Date    string
	Source  string
	Schemas map[string]*schema
},
) {
	if err := json.Unmarshal(schemaJSON, &p); err != nil {
		panic(err) // the description is part of the program
	}
	return p
})

// Published returns the date of the description that answers are checked
// against, and its source.
func Published() (date, source string) { return published().Date, published().Source }

// schema is the part of JSON Schema that the description uses.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"` // a name or several
	Required   []string           `json:"required"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	Enum       []string           `json:"enum"`
	AnyOf      []*schema          `json:"anyOf"`
}

// conforms returns the difference between a value and a schema of the
// description, nil if there is none. Fields that the description does not
// define are allowed.
func conforms(name string, value any) error { return published().Schemas[name].check(name, value) }

func (s *schema) check(at string, value any) error {
	switch {
	case s.Ref != "":
		return published().Schemas[s.Ref].check(at, value)
	case s.AnyOf != nil:
		var err error
		for _, one := range s.AnyOf {
			if err = one.check(at, value); err == nil {
				return nil
			}
		}
		return err
	case s.Enum != nil:
		if text, ok := value.(string); !ok || !slices.Contains(s.Enum, text) {
			return fmt.Errorf("%s is %s, expected %q", at, shown(value), s.Enum)
		}
		return nil
	}
	if !slices.Contains(s.types(), kind(value)) && (kind(value) != "integer" || !slices.Contains(s.types(), "number")) {
		return fmt.Errorf("%s is %s, expected %v", at, shown(value), s.Type)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				return fmt.Errorf("%s has no %s", at, name)
			}
		}
		for name, property := range s.Properties {
			if field, ok := v[name]; ok {
				if err := property.check(at+"."+name, field); err != nil {
					return err
				}
			}
		}
	case []any:
		for i, item := range v {
			if err := s.Items.check(fmt.Sprintf("%s[%d]", at, i), item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *schema) types() (names []string) {
	if name, ok := s.Type.(string); ok {
		return []string{name}
	}
	list, _ := s.Type.([]any)
	for _, name := range list {
		names = append(names, fmt.Sprint(name))
	}
	return names
}

// kind returns the type of a value, as JSON Schema names it.
func kind(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// shown returns a value for a message.
func shown(value any) string {
	switch kind(value) {
	case "array", "object":
		return "an " + kind(value)
	}
	data, _ := json.Marshal(value)
	return clip(string(data))
}
