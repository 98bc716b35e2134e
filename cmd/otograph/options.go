package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/otograph/otograph/spec"
)

// optionFlags holds the options of a run as flags. newOptionFlags creates them
// from the table of package spec, so that every new option becomes a flag.
type optionFlags struct {
	Flags kong.Plugins `embed:""`
}

// flagTags holds the properties of some flags that the table lacks: short
// names, and lists whose entries may contain commas.
var flagTags = map[string]string{
	"asr_language":         `short:"l" placeholder:"CODE"`,
	"initial_prompt":       `placeholder:"TEXT"`,
	"hotwords":             `placeholder:"WORD"`,
	"audio_events_classes": `aliases:"audio-events-class" sep:"none" placeholder:"NAME"`,
}

// auto is the flag value for null in an option with true, false or null.
const auto = "auto"

// newOptionFlags returns a flag for every option except aliases of older names.
func newOptionFlags() optionFlags {
	var fields []reflect.StructField
	for _, row := range spec.Table() {
		if !row.Unlisted() {
			fields = append(fields, flagField(row, len(fields)))
		}
	}
	return optionFlags{kong.Plugins{reflect.New(reflect.StructOf(fields)).Interface()}}
}

// flagField returns the struct field from which kong creates an option's flag.
func flagField(row spec.Option, n int) reflect.StructField {
	help := row.Help
	if row.Min != nil && row.Max != nil {
		help += fmt.Sprintf(" From %v to %v.", *row.Min, *row.Max)
	}
	tag := fmt.Sprintf(`name:"%s" group:"%s" `, strings.ReplaceAll(row.Name, "_", "-"), row.Group)
	kind := map[spec.Kind]reflect.Type{
		spec.KindBool: reflect.TypeFor[*bool](), spec.KindInt: reflect.TypeFor[*int](), spec.KindFloat: reflect.TypeFor[*float64](),
		spec.KindString: reflect.TypeFor[*string](), spec.KindStrings: reflect.TypeFor[[]string](),
	}[row.Kind]
	switch {
	case row.Kind == spec.KindBool && row.Nullable:
		kind = reflect.TypeFor[string]()
		tag += fmt.Sprintf(`enum:"true,false,%s" default:"%s" placeholder:"%s" `, auto, auto, auto)
		help = strings.ReplaceAll(help, "null", auto)
	case row.Kind == spec.KindBool:
		help += fmt.Sprintf(" Default: %v.", row.Default)
		tag += `negatable:"" `
	case row.Default != nil:
		tag += fmt.Sprintf(`placeholder:"%v" `, row.Default)
	case flagTags[row.Name] == "":
		tag += `placeholder:"N" `
	}
	tag += flagTags[row.Name] + fmt.Sprintf(` help:%q`, help)
	return reflect.StructField{Name: fmt.Sprintf("Flag%d", n), Type: kind, Tag: reflect.StructTag(tag)}
}

// options returns the options selected by the flags. Speakers are only
// identified by default if there is a transcription.
func (f *optionFlags) options() (spec.Options, error) {
	var o spec.Options
	given := map[string]any{}
	flags := reflect.ValueOf(f.Flags[0]).Elem()
	n := 0
	for _, row := range spec.Table() {
		if row.Unlisted() {
			continue
		}
		value := flags.Field(n)
		n++
		switch {
		case value.Kind() == reflect.String: // true, false or auto
			if text := value.String(); text != auto {
				given[row.Name] = text == "true"
			}
		case !value.IsNil():
			given[row.Name] = value.Interface()
		}
	}
	data, err := json.Marshal(given)
	if err != nil {
		return o, &usageError{err}
	}
	if err = json.Unmarshal(data, &o); err == nil {
		if o.EnableASR != nil && !*o.EnableASR && o.EnableDiarize == nil {
			o.EnableDiarize = new(false)
		}
		_, err = o.Effective()
	}
	if bad := (*spec.OptionError)(nil); errors.As(err, &bad) {
		return o, &usageError{fmt.Errorf("--%s: %s", strings.ReplaceAll(bad.Field, "_", "-"), bad.Reason)}
	}
	return o, err
}
