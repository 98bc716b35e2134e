package main

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
)

// modelFlags selects the models.
type modelFlags struct {
	Models         string `name:"models" placeholder:"DIR" env:"OTOGRAPH_MODELS" group:"Models" help:"Model folder; default: the user's data folder, else the embedded demo models."`
	StandardModel  string `placeholder:"FILE" group:"Models" help:"Whisper model (ggml) of the standard tier."`
	OptimizedModel string `placeholder:"FILE" group:"Models" help:"CTC-type model (ONNX) of the optimized tier."`
	VADModel       string `name:"vad-model" placeholder:"FILE" group:"Models" help:"Voice activity model (Silero, ONNX)."`
	EmbedderModel  string `placeholder:"FILE" group:"Models" help:"Speaker embedder (ONNX)."`
	SegmenterModel string `placeholder:"FILE" group:"Models" help:"Speaker segmentation model (pyannote, ONNX), which detects overlapping speech."`
	TaggerModel    string `placeholder:"FILE" group:"Models" help:"Sound event tagger (ONNX)."`
	RequireReal    bool   `group:"Models" help:"Fail instead of falling back to a demo model."`
}

// flagArgs returns a struct's flags as a command line for another process. It
// covers all fields, so that a new flag also reaches the workers.
func flagArgs(flags any) (args []string) {
	v := reflect.ValueOf(flags)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			continue
		}
		name := v.Type().Field(i).Tag.Get("name")
		if name == "" { // kong's default name
			name = flagName(v.Type().Field(i).Name)
		}
		args = append(args, fmt.Sprintf("--%s=%v", name, v.Field(i)))
	}
	return args
}

// flagName returns the flag of a field.
func flagName(field string) string {
	return strings.ToLower(wordBorder.ReplaceAllString(field, "$1-$2"))
}

var wordBorder = regexp.MustCompile("([a-z])([A-Z])")

// named returns the model files given by separate flags; "" if not given.
func (f *modelFlags) named() map[models.Role]string {
	return map[models.Role]string{
		models.RoleStandard: f.StandardModel, models.RoleOptimized: f.OptimizedModel, models.RoleVAD: f.VADModel,
		models.RoleEmbedder: f.EmbedderModel, models.RoleSegmenter: f.SegmenterModel, models.RoleTagger: f.TaggerModel,
	}
}

// modelFiles lists named.
func (f *modelFlags) modelFiles() []string { return slices.Collect(maps.Values(f.named())) }

// load returns the sources of the set: named files, then the folder, then the
// demo models.
func (f *modelFlags) load() library.Load {
	return library.Load{Dir: f.Models, Files: f.named(), Fallback: demo.Models()}.OrDefaultDir()
}

// open opens the set.
func (f *modelFlags) open() (*models.Set, error) { return f.opened(f.load()) }

func (f *modelFlags) opened(load library.Load) (*models.Set, error) {
	set, err := load.Open()
	if err != nil {
		return nil, err
	}
	if f.RequireReal {
		return set, set.RequireReal()
	}
	return set, nil
}

// notice prints once, on standard error, which of the models that a run needs
// are demonstration models.
func (f *modelFlags) notice(set *models.Set, opt otograph.Options) {
	e, err := opt.Effective()
	if err != nil {
		return // the run itself reports the error
	}
	var roles []models.Role
	if *e.EnableASR {
		roles = append(roles, models.RoleVAD)
		if e.Optimize == nil || *e.Optimize {
			roles = append(roles, models.RoleOptimized)
		}
		roles = append(roles, models.RoleStandard)
	}
	if *e.EnableDiarize {
		roles = append(roles, models.RoleEmbedder)
	}
	if *e.EnableAudioEvents {
		roles = append(roles, models.RoleTagger)
	}
	var demos []string
	for _, role := range roles {
		if m, ok := set.Role(role); ok && m.Demo {
			demos = append(demos, string(role))
		}
	}
	if len(demos) == 0 {
		return
	}
	which := "the embedded demo models"
	if len(demos) < len(roles) {
		which = "embedded demo models (" + strings.Join(demos, ", ") + ")"
	}
	warn("Using %s: they know synthetic voices and a small vocabulary. For real recordings: `otograph models pull balanced`.\n", which)
}
