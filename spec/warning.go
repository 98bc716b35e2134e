package spec

import "reflect"

// WarnAudio is the Option of warnings about the recording and its speakers.
const WarnAudio = "audio"

// Warning reports an option that a run could not honor, or a property of the
// recording that affects the result.
type Warning struct {
	Option string `json:"option"` // its JSON name; WarnAudio, "device" or "cascade"
	Reason string `json:"reason"` // why the option has no effect, or which part is missing, in plain words
}

// OfAudio returns the warnings about the recording, for all result forms.
func OfAudio(list []Warning) (out []Warning) {
	for _, w := range list {
		if w.Option == WarnAudio {
			out = append(out, w)
		}
	}
	return out
}

// Given returns the JSON names of the set options, in Table's order.
func (o Options) Given() []string { return o.names(func(Option, reflect.Value) bool { return true }) }

// Changed returns the JSON names of options off their default, in order.
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
