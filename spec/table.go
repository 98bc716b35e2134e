package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Kind is the type of an option's value.
type Kind int

// The kinds of options.
const (
	KindBool Kind = iota
	KindInt
	KindFloat
	KindString
	KindStrings // a list of strings
)

// String returns the name of the kind in errors.
func (k Kind) String() string {
	return [...]string{"true or false", "an integer", "a number", "a string", "a list of strings"}[k]
}

// Option is one row of the table of options.
type Option struct {
	Name     string   // in JSON
	Kind     Kind     // of its value
	Nullable bool     // null is allowed and means no value
	Default  any      // bool, int, float64 or string; nil if the option has none
	Min, Max *float64 // of a number; for texts and entries, Max is in characters
	Items    int      // largest number of entries in a list; 0 if unlimited
	Enum     []string // allowed values; nil if not restricted
	Since    string   // first version of Otograph with the option
	Group    string   // heading of the option in the help
	Help     string   // one sentence for people

	rule  string
	index int // of the field in Options
}

// Unlisted reports whether the option is another's earlier name or an addition
// to the specification: accepted, but without a flag, and echoed only if given.
func (o Option) Unlisted() bool { return o.Default == nil && !o.Nullable }

// Table returns the table of options in the order of the specification.
func Table() []Option { return slices.Clone(options) }

// optionNames returns the JSON names of all options in the order of Table.
func optionNames() []string {
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = o.Name
	}
	return names
}

// options is the table, read from the tags of Options. It panics if a tag is
// wrong, because that is a programming error.
var options = func() []Option {
	t := reflect.TypeFor[Options]()
	rows := make([]Option, t.NumField())
	for i := range rows {
		row, err := readRow(t.Field(i))
		if err != nil {
			panic(fmt.Sprintf("spec: Options.%s: %v", t.Field(i).Name, err))
		}
		row.index = i
		rows[i] = row
	}
	return rows
}()

// readRow reads one field's tags.
func readRow(f reflect.StructField) (Option, error) {
	tag := f.Tag.Get
	row := Option{Name: tag("json"), Since: tag("since"), Group: tag("group"), Help: tag("help"), rule: tag("rule")}
	if row.Name == "" || row.Since == "" || row.Group == "" || row.Help == "" {
		return row, fmt.Errorf("wants the tags json, since, group and help")
	}
	if _, ok := rules[row.rule]; !ok && row.rule != "" {
		return row, fmt.Errorf("there is no rule %q", row.rule)
	}
	var err error
	if row.Kind, err = kindOf(f.Type); err != nil {
		return row, err
	}
	if row.Min, err = number(tag("min")); err != nil {
		return row, err
	}
	if row.Max, err = number(tag("max")); err != nil {
		return row, err
	}
	if items := tag("items"); items != "" {
		if row.Items, err = strconv.Atoi(items); err != nil {
			return row, err
		}
	}
	if enum := tag("enum"); enum != "" {
		row.Enum = strings.Split(enum, ",")
	}
	switch def := tag("default"); def {
	case "":
	case "null":
		row.Nullable = true
	default:
		row.Default, err = parseDefault(row.Kind, def)
	}
	return row, err
}

var kinds = map[reflect.Kind]Kind{reflect.Bool: KindBool, reflect.Int: KindInt, reflect.Float64: KindFloat, reflect.String: KindString}

func kindOf(t reflect.Type) (Kind, error) {
	if t == reflect.TypeFor[[]string]() {
		return KindStrings, nil
	}
	if t.Kind() == reflect.Pointer {
		if kind, ok := kinds[t.Elem().Kind()]; ok {
			return kind, nil
		}
	}
	return 0, fmt.Errorf("has type %s; want []string or a pointer to bool, int, float64 or string", t)
}

func number(text string) (*float64, error) {
	if text == "" {
		return nil, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	return &f, err
}

func parseDefault(k Kind, text string) (any, error) {
	switch k {
	case KindBool:
		return strconv.ParseBool(text)
	case KindInt:
		return strconv.Atoi(text)
	case KindFloat:
		return strconv.ParseFloat(text, 64)
	case KindString:
		return text, nil
	default:
		return nil, fmt.Errorf("a list has no default but null")
	}
}
