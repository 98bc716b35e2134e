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

// optionFlags are the options of a run as flags. They are made from the table
// of package spec by newOptionFlags, so that a new option is a flag.
type optionFlags struct {
	Flags kong.Plugins `embed:""`
}

// flagTags are what the flags of some options have beyond the table: short
// names, and lists whose entries may hold commas.
var flagTags = map[string]string{
	"asr_language":         `short:"l" placeholder:"CODE"`,
	"initial_prompt":       `placeholder:"TEXT"`,
	"hotwords":             `placeholder:"WORD"`,
	"audio_events_classes": `aliases:"audio-events-class" sep:"none" placeholder:"NAME"`,
}

// auto is the value of a flag for an option of true, false or null that is null.
const auto = "auto"

// newOptionFlags returns a flag for every option but the earlier names of others.
func newOptionFlags() optionFlags {
	var fields []reflect.StructField
	for _, row := range spec.Table() {
		if !row.Unlisted() {
			fields = append(fields, flagField(row, len(fields)))
		}
	}
	return optionFlags{kong.Plugins{reflect.New(reflect.StructOf(fields)).Interface()}}
}

// flagField returns the field that kong makes an option's flag of.
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

// options returns the options that the flags ask for. Speakers are identified by
// default only where there is a transcription.
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
