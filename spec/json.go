package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// MarshalJSON writes the options that are set and omits the others.
func (o Options) MarshalJSON() ([]byte, error) {
	return writeOptions(reflect.ValueOf(o), func(Option) bool { return false })
}

// MarshalJSON writes all options; an option without a value is null. An earlier
// name is only included if it was given.
func (e EffectiveOptions) MarshalJSON() ([]byte, error) {
	return writeOptions(reflect.ValueOf(e), func(row Option) bool { return !row.Unlisted() })
}

// writeOptions writes the options that are set, and null for the other options
// for which asNull returns true.
func writeOptions(v reflect.Value, asNull func(Option) bool) ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('{')
	for _, row := range options {
		field := v.Field(row.index)
		if field.IsNil() && !asNull(row) {
			continue
		}
		b, err := json.Marshal(field.Interface())
		if err != nil {
			return nil, fmt.Errorf("option %s: %w", row.Name, err)
		}
		if buf.Len() > 1 {
			buf.WriteByte(',')
		}
		fmt.Fprintf(&buf, "%q:%s", row.Name, b)
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// UnmarshalJSON implements the strict decoding that the type's comment
// describes. It checks names and types; Effective checks values.
func (o *Options) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	tok, err := dec.Token()
	if err != nil {
		return optionError("", "not valid JSON: %v", err)
	}
	if tok != json.Delim('{') {
		return optionError("", "must be a JSON object")
	}
	v := reflect.ValueOf(o).Elem()
	names, seen := optionNames(), map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return optionError("", "not valid JSON: %v", err)
		}
		name, _ := tok.(string)
		i := slices.Index(names, name)
		if i < 0 {
			return optionError(Shorten(name), "unknown option%s", DidYouMean(name, names))
		}
		if seen[name] {
			return optionError(name, "is given twice")
		}
		seen[name] = true
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return optionError(name, "not valid JSON: %v", err)
		}
		if err := options[i].set(v.Field(options[i].index), raw); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil && !errors.Is(err, io.EOF) {
		return optionError("", "not valid JSON: %v", err)
	}
	return nil
}

// set decodes a value into the option's field.
func (o *Option) set(field reflect.Value, raw json.RawMessage) error {
	if string(raw) == "null" {
		if !o.Nullable {
			return optionError(o.Name, "must be %s, not null", o.Kind)
		}
		field.SetZero()
		return nil
	}
	wrong := optionError(o.Name, "must be %s, not %s", o.Kind, Shorten(string(raw)))
	if o.Kind == KindInt {
		var f float64 // 5.0 is an integer in JSON
		if err := json.Unmarshal(raw, &f); err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<31 {
			return wrong
		}
		field.Set(reflect.ValueOf(new(int(f))))
		return nil
	}
	target := reflect.New(field.Type())
	if err := json.Unmarshal(raw, target.Interface()); err != nil || o.Kind == KindStrings && hasNull(raw) {
		return wrong
	}
	field.Set(target.Elem())
	return nil
}

// hasNull reports whether a list has a null, which decodes as "".
func hasNull(raw json.RawMessage) bool {
	var list []*string
	return json.Unmarshal(raw, &list) != nil || slices.Contains(list, nil)
}

// plain formats a number without an exponent unless it is huge.
func plain(f float64) string {
	if math.Abs(f) >= 1e15 {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
