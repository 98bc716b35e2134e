package spec

import "slices"

// Tier is the kind of recognizer of a transcript. Its values are the billing
// modes of the specification, which call the optimized tier "zh_lite" in JSON;
// in Go and in commands its name is "optimized" (String).
type Tier string

// String returns the tier's name, "standard" or "optimized".
func (t Tier) String() string {
	if t == TierOptimized {
		return "optimized"
	}
	return string(t)
}

const (
	// TierStandard is the Whisper tier: word times, 99 languages.
	TierStandard Tier = "standard"
	// TierOptimized is the fast tier of small CTC-type models: segment times.
	TierOptimized Tier = "zh_lite"
)

// OptimizedLanguages returns the languages that the optimized tier serves by
// the specification ("Transcription tiers"). Available may list more.
func OptimizedLanguages() []string { return []string{"zh", "en", "es", "fr", "pt"} }

// Available describes the capabilities of a set of models, as workers report.
type Available struct {
	// Standard reports whether there is a model for the standard tier.
	Standard bool `json:"standard"`
	// StandardLanguages are the codes of the languages that the standard model
	// supports; empty means all of Languages.
	StandardLanguages []string `json:"standard_languages,omitempty"`
	// Translates reports whether the standard model translates into English.
	Translates bool `json:"translates,omitempty"`
	// Optimized are the codes that the optimized tier serves: the
	// OptimizedLanguages that one of its models supports and, if the tier is
	// not restricted to the specification, all others that a model lists.
	Optimized []string `json:"optimized,omitempty"`
	// Models are the recognizers that a task may name.
	Models []NamedModel `json:"models,omitempty"`
}

// NamedModel is a recognizer that a task may name.
type NamedModel struct {
	// Name is the model's name in its folder.
	Name string `json:"name"`
	// Tier is the tier that the model belongs to, and is charged as.
	Tier Tier `json:"tier"`
	// Languages are the codes that it supports; empty means all of Languages.
	Languages []string `json:"languages,omitempty"`
	// Translates reports whether a task that names it can be translated.
	Translates bool `json:"translates,omitempty"`
}

// Only returns the capabilities for a task that names one of the models, and
// whether the models include it. A task that names an optimized model still
// gets the standard tier in the languages that the model does not support.
func (a Available) Only(name string) (Available, bool) {
	i := slices.IndexFunc(a.Models, func(m NamedModel) bool { return m.Name == name })
	if i < 0 {
		return Available{}, false
	}
	m := a.Models[i]
	if m.Tier == TierOptimized {
		a.Optimized = m.Languages
		return a, true
	}
	return Available{Standard: true, StandardLanguages: m.Languages, Translates: m.Translates, Models: a.Models}, true
}

// Route returns the tier that transcribes a recording in a language with the
// given models. Only it implements the specification's rule:
//
//   - optimize=false: standard.
//   - otherwise, a language that the optimized tier serves with these models:
//     optimized.
//   - otherwise: standard, silently, even if optimize=true.
//
// The earlier option optimize_zh restricts the optimized tier to Chinese (true)
// or disables it (false).
func Route(language string, o Options, a Available) Tier {
	if o.Optimize != nil && !*o.Optimize || o.OptimizeZh != nil && (!*o.OptimizeZh || language != "zh") {
		return TierStandard
	}
	if slices.Contains(a.Optimized, language) {
		return TierOptimized
	}
	return TierStandard
}

// Languages returns the models' languages with these options, in order.
func (a Available) Languages(o Options) []string {
	var codes []string
	for _, l := range languages {
		standard := a.Standard && (len(a.StandardLanguages) == 0 || slices.Contains(a.StandardLanguages, l.Code))
		if standard || Route(l.Code, o, a) == TierOptimized {
			codes = append(codes, l.Code)
		}
	}
	return codes
}

// runs reports whether a tier may run for the options: it is the tier of the
// given language, or of one that may be detected.
func (a Available) runs(tier Tier, o Options) bool {
	candidates := a.Languages(o)
	if o.ASRLanguage != nil {
		code, ok := NormalizeLanguage(*o.ASRLanguage)
		if !ok || !slices.Contains(candidates, code) {
			return false
		}
		candidates = []string{code}
	}
	return slices.ContainsFunc(candidates, func(code string) bool { return Route(code, o, a) == tier })
}

// PossibleTiers returns the tiers that may run if any of several sets of models
// may get the recording, the standard tier first; none if the options disable
// transcription or no model supports the language. Without any set, it returns
// the tiers of all possible models.
func PossibleTiers(o Options, sets []Available) []Tier {
	if o.EnableASR != nil && !*o.EnableASR {
		return nil
	}
	if len(sets) == 0 {
		sets = []Available{{Standard: true}, {Standard: true, Optimized: OptimizedLanguages()}}
	}
	var possible []Tier
	for _, tier := range []Tier{TierStandard, TierOptimized} {
		if slices.ContainsFunc(sets, func(a Available) bool { return a.runs(tier, o) }) {
			possible = append(possible, tier)
		}
	}
	return possible
}
