package main

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/models/published"
)

// modelFlags holds the flags that select models.
type modelFlags struct {
	Models         string `name:"models" placeholder:"DIR" env:"OTOGRAPH_MODELS" group:"Models" help:"Model folder; default: the user's data folder. The embedded published models fill the other roles, except transcription."`
	StandardModel  string `placeholder:"FILE" group:"Models" help:"Whisper model (ggml) of the standard tier."`
	OptimizedModel string `placeholder:"FILE" group:"Models" help:"CTC-type model (ONNX) of the optimized tier."`
	VADModel       string `name:"vad-model" placeholder:"FILE" group:"Models" help:"Voice activity model (Silero, ONNX)."`
	EmbedderModel  string `placeholder:"FILE" group:"Models" help:"Speaker embedder (ONNX)."`
	SegmenterModel string `placeholder:"FILE" group:"Models" help:"Speaker segmentation model (pyannote, ONNX), which detects overlapping speech."`
	TaggerModel    string `placeholder:"FILE" group:"Models" help:"Sound event tagger (ONNX)."`
	Demo           bool   `env:"OTOGRAPH_DEMO" group:"Models" help:"Use the demo models, which know synthetic voices and a small vocabulary, for every role without --models or a model file."`
}

// flagArgs returns a struct's flags as a command line for another process. It
// covers all fields, so that a new flag also reaches the workers.
func flagArgs(flags any) (args []string) {
	v := reflect.ValueOf(flags)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			continue
		}
		name := cmp.Or(v.Type().Field(i).Tag.Get("name"), flagName(v.Type().Field(i).Name)) // kong's default name
		args = append(args, fmt.Sprintf("--%s=%v", name, v.Field(i)))
	}
	return args
}

func flagName(field string) string {
	return strings.ToLower(wordBorder.ReplaceAllString(field, "$1-$2"))
}

var wordBorder = regexp.MustCompile("([a-z])([A-Z])")

// named returns, for each role, the model file of its own flag; "" without one.
func (f *modelFlags) named() map[models.Role]string {
	return map[models.Role]string{
		models.RoleStandard: f.StandardModel, models.RoleOptimized: f.OptimizedModel, models.RoleVAD: f.VADModel,
		models.RoleEmbedder: f.EmbedderModel, models.RoleSegmenter: f.SegmenterModel, models.RoleTagger: f.TaggerModel,
	}
}

// modelFiles lists named.
func (f *modelFlags) modelFiles() []string { return slices.Collect(maps.Values(f.named())) }

// load returns the sources of the set: named files, then the folder, then the
// embedded models. With --demo, the default folder is not used.
func (f *modelFlags) load() library.Load {
	load := library.Load{Dir: f.Models, Files: f.named(), Fallback: published.Models()}
	if f.Demo {
		load.Fallback = demo.Models()
		return load
	}
	return load.OrDefaultDir()
}

func (f *modelFlags) open() (*models.Set, error) { return f.load().Open() }

// openRecognizer opens the set for a command that transcribes.
func (f *modelFlags) openRecognizer() (*models.Set, error) {
	set, err := f.open()
	if err == nil {
		err = needRecognizer(set, true)
	}
	return set, err
}

// needRecognizer returns an error if a run transcribes without a recognizer.
func needRecognizer(set *models.Set, asr bool) error {
	_, standard := set.Role(models.RoleStandard)
	_, optimized := set.Role(models.RoleOptimized)
	if !asr || standard || optimized {
		return nil
	}
	return fmt.Errorf("%w: no model for transcription: run `otograph models pull` (%s), or pass --standard-model FILE", models.ErrMissing, starterSize())
}
