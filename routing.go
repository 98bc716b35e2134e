package otograph

import "slices"

// applicableLanguages are those of the optimized tier (specification, "Transcription tiers").
var applicableLanguages = []string{"zh", "en", "es", "fr", "pt"}

// tierFor is the specification's routing: audio submitted → language known →
// tier. optimized tells whether an optimized model for a language is loaded,
// standard whether there is a standard model.
//
//   - optimize=false: standard.
//   - otherwise, a language of the optimized tier with a model for it: optimized.
//   - otherwise: standard, silently, also when optimize=true.
//
// The earlier optimize_zh narrows the applicable languages to Chinese (true) or
// to none (false).
func tierFor(language string, opt EffectiveOptions, optimized func(language string) bool) Tier {
	if opt.Optimize != nil && !*opt.Optimize {
		return TierStandard
	}
	applicable := applicableLanguages
	if opt.OptimizeZh != nil {
		applicable = nil
		if *opt.OptimizeZh {
			applicable = []string{"zh"}
		}
	}
	if slices.Contains(applicable, language) && optimized(language) {
		return TierOptimized
	}
	return TierStandard
}
