package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// rules are the checks that options name in their tag "rule". Each check
// receives one string of the option's value.
var rules = map[string]func(name, value string) error{
	"language": func(name, value string) error {
		if _, ok := NormalizeLanguage(value); !ok {
			return optionError(name, "unknown language %q: use an ISO 639-1 or 639-3 code such as %s, or omit it to detect the language", Shorten(value), cmp.Or(nearestLanguage(value), "en, zh or deu"))
		}
		return nil
	},
	"event class": func(name, value string) error {
		if _, ok := LookupEventClass(value); !ok {
			return optionError(name, "there is no class %q; the nearest is %q", Shorten(value), NearestEventClass(value))
		}
		return nil
	},
}

// validate checks the rules between options, then the rules of each option.
func (e *EffectiveOptions) validate() error {
	switch {
	case !*e.EnableASR && !*e.EnableDiarize && !*e.EnableAudioEvents:
		return optionError("enable_asr", "at least one of enable_asr, enable_diarize and enable_audio_events must be true")
	case *e.EnableDiarize && !*e.EnableASR:
		return optionError("enable_diarize", "diarization requires transcription: enable_diarize=true requires enable_asr=true")
	case e.Optimize != nil && e.OptimizeZh != nil:
		return optionError("optimize_zh", "is the earlier form of optimize: use only one of the two")
	}
	v := reflect.ValueOf(e).Elem()
	for i := range options {
		if field := v.Field(options[i].index); !field.IsNil() {
			if err := options[i].check(field); err != nil {
				return err
			}
		}
	}
	if *e.MinSpeakers > *e.MaxSpeakers {
		return optionError("min_speakers", "must not be above max_speakers: %d > %d", *e.MinSpeakers, *e.MaxSpeakers)
	}
	return nil
}

// check checks a value against its row; field is not nil.
func (o *Option) check(field reflect.Value) error {
	switch o.Kind {
	case KindInt:
		return o.checkNumber(float64(field.Elem().Int()))
	case KindFloat:
		return o.checkNumber(field.Elem().Float())
	case KindString:
		return o.checkText("", field.Elem().String())
	case KindStrings:
		return o.checkList(field.Interface().([]string))
	default:
		return nil
	}
}

func (o *Option) checkNumber(v float64) error {
	if o.Min != nil && o.Max != nil && !(v >= *o.Min && v <= *o.Max) { // NaN fails too
		return optionError(o.Name, "must be between %s and %s, not %s", plain(*o.Min), plain(*o.Max), plain(v))
	}
	return nil
}

// checkText checks a text; what names an entry of a list.
func (o *Option) checkText(what, s string) error {
	if rule := rules[o.rule]; rule != nil {
		return rule(o.Name, s)
	}
	switch n := utf8.RuneCountInString(s); {
	case len(o.Enum) > 0 && !slices.Contains(o.Enum, s):
		return optionError(o.Name, `must be "%s", not %q`, strings.Join(o.Enum, `" or "`), Shorten(s))
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return optionError(o.Name, "%sis not valid text", what)
	case what != "" && strings.TrimSpace(s) == "":
		return optionError(o.Name, "%sis empty", what)
	case o.Max != nil && n > int(*o.Max):
		return optionError(o.Name, "%shas %d characters, at most %s are allowed", what, n, plain(*o.Max))
	}
	return nil
}

func (o *Option) checkList(list []string) error {
	if o.Items > 0 && len(list) > o.Items {
		return optionError(o.Name, "at most %d are allowed, not %d", o.Items, len(list))
	}
	for i, s := range list {
		if err := o.checkText(fmt.Sprintf("entry %d ", i), s); err != nil {
			return err
		}
	}
	return nil
}
