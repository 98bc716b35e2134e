package stages

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/internal/pipeline/engines"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/spec"
)

// TestCompanion checks for which words a CTC model is used in addition.
func TestCompanion(t *testing.T) {
	words, names := asr.Options{Language: "en", WordTimestamps: true}, asr.Options{Language: "en", Hotwords: []string{"Yarrowick"}}
	transducer := func() *models.Set {
		set := demo.Models()
		set.Models = append(set.Models, models.Model{
			Name: "transducer", Role: models.RoleOptimized, Contract: models.ContractNeMoTransducer, Languages: []string{"en"},
		})
		return set
	}
	for _, test := range []struct {
		name      string
		set       *models.Set
		tier      spec.Tier
		opt       asr.Options
		translate bool
		want      bool
	}{
		{"a CTC model needs no companion", demo.Models(), spec.TierOptimized, names, false, false},
		{"hotwords of a transducer", transducer(), spec.TierOptimized, names, false, true},
		{"a transducer's words keep their times", transducer(), spec.TierOptimized, words, false, false},
		{"the standard tier's words", demo.Models(), spec.TierStandard, words, false, true},
		{"the standard tier's hotwords", demo.Models(), spec.TierStandard, names, false, true},
		{"nothing to do", demo.Models(), spec.TierStandard, asr.Options{Language: "en"}, false, false},
		{"no CTC model of the language", demo.Models(), spec.TierStandard, asr.Options{Language: "ja", WordTimestamps: true}, false, false},
		{"a translation says other words", demo.Models(), spec.TierStandard, words, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := engines.New(test.set, engines.Options{Cores: 1})
			defer func() { assert.NoError(t, e.Close()) }()
			s := &Stages{Engines: e, Log: slog.New(slog.DiscardHandler), Translate: test.translate}
			m := s.companion(t.Context(), test.tier, test.opt)
			assert.Equal(t, test.want, m != nil)
		})
	}
}
