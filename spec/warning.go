package spec

import "reflect"

// Warning reports an option that a run could not honor.
type Warning struct {
	Option string // its JSON name
	Reason string // why it has no effect, in plain words
}

// String returns the warning as one line.
func (w Warning) String() string { return w.Option + ": " + w.Reason }

// Given returns the JSON names of the options that are set, in the order of
// Table.
func (o Options) Given() []string {
	return o.names(func(Option, reflect.Value) bool { return true })
}

// Changed returns the JSON names of the options that differ from their default,
// in the order of Table.
func (o Options) Changed() []string {
	return o.names(func(row Option, value reflect.Value) bool {
		if row.Kind == KindStrings {
			return value.Len() > 0
		}
		if row.Default == nil {
			return true
		}
		return !reflect.ValueOf(row.Default).Convert(value.Type().Elem()).Equal(value.Elem())
	})
}

// names returns the names of the options that are set and accepted by keep.
func (o Options) names(keep func(Option, reflect.Value) bool) (names []string) {
	v := reflect.ValueOf(o)
	for _, row := range options {
		if f := v.Field(row.index); !f.IsNil() && keep(row, f) {
			names = append(names, row.Name)
		}
	}
	return names
}
