package spec

import "slices"

// Tier is the kind of recognizer that made a transcript. Its values are the
// billing modes of the specification.
type Tier string

const (
	// TierStandard is the Whisper tier: word times, 99 languages.
	TierStandard Tier = "standard"
	// TierOptimized is the fast tier of small CTC-type models: segment times.
	// Its name in the specification is historical.
	TierOptimized Tier = "zh_lite"
)

// OptimizedLanguages returns the codes of the languages to which the optimized
// tier applies by the specification ("Transcription tiers"). Available may list
// others, too.
func OptimizedLanguages() []string { return []string{"zh", "en", "es", "fr", "pt"} }

// Available describes what one set of models can transcribe. Every worker
// reports its own.
type Available struct {
	// Standard reports whether there is a model of the standard tier.
	Standard bool `json:"standard"`
	// StandardLanguages are the codes that the standard model knows; empty
	// means all of Languages.
	StandardLanguages []string `json:"standard_languages,omitempty"`
	// Translates reports whether the standard model can write English where another
	// language is spoken.
	Translates bool `json:"translates,omitempty"`
	// Optimized are the codes that the optimized tier serves: those of
	// OptimizedLanguages that a model of it takes, and where it is not held to the
	// specification, the others that a model lists.
	Optimized []string `json:"optimized,omitempty"`
}

// Route returns the tier that transcribes a recording in the given language
// with the given models. It is the specification's rule, and there is no other
// copy of it:
//
//   - optimize=false: standard.
//   - otherwise, a language that the optimized tier serves with these models: optimized.
//   - otherwise: standard, silently, also when optimize=true.
//
// The earlier optimize_zh narrows the applicable languages to Chinese (true) or
// to none (false).
func Route(language string, o Options, a Available) Tier {
	if o.Optimize != nil && !*o.Optimize {
		return TierStandard
	}
	if o.OptimizeZh != nil && (!*o.OptimizeZh || language != "zh") {
		return TierStandard
	}
	if slices.Contains(a.Optimized, language) {
		return TierOptimized
	}
	return TierStandard
}

// knows reports whether Route leads a recording in the language, with these
// options, to a model that knows the language.
func (a Available) knows(language string, o Options) bool {
	if Route(language, o, a) == TierOptimized {
		return true
	}
	return a.Standard && (len(a.StandardLanguages) == 0 || slices.Contains(a.StandardLanguages, language))
}

// Languages returns the codes that the models know with these options, in the
// order of Languages.
func (a Available) Languages(o Options) []string {
	var codes []string
	for _, l := range languages {
		if a.knows(l.Code, o) {
			codes = append(codes, l.Code)
		}
	}
	return codes
}

// Tiers returns the tiers that may run for the options with one set of models,
// the standard tier first: one where the language is given, those of all
// languages that may be detected otherwise. There is none when the options ask
// for no transcription or no model knows the language.
func Tiers(o Options, a Available) []Tier {
	if o.EnableASR != nil && !*o.EnableASR {
		return nil
	}
	candidates := a.Languages(o)
	if o.ASRLanguage != nil {
		code, ok := NormalizeLanguage(*o.ASRLanguage)
		if !ok || !slices.Contains(candidates, code) {
			return nil
		}
		candidates = []string{code}
	}
	var tiers []Tier
	for _, tier := range []Tier{TierStandard, TierOptimized} {
		if slices.ContainsFunc(candidates, func(code string) bool { return Route(code, o, a) == tier }) {
			tiers = append(tiers, tier)
		}
	}
	return tiers
}

// PossibleTiers returns the tiers that may run when any one of several sets of
// models may get the recording, the standard tier first. Without any set
// nothing is known about the models: what any models could do is possible.
func PossibleTiers(o Options, sets []Available) []Tier {
	if len(sets) == 0 {
		sets = []Available{{Standard: true}, {Standard: true, Optimized: OptimizedLanguages()}}
	}
	var possible []Tier
	for _, tier := range []Tier{TierStandard, TierOptimized} {
		if slices.ContainsFunc(sets, func(a Available) bool { return slices.Contains(Tiers(o, a), tier) }) {
			possible = append(possible, tier)
		}
	}
	return possible
}
