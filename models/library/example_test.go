package library_test

import (
	"errors"
	"fmt"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
)

// Build a set from a folder that need not exist and a fallback.
func ExampleLoad() {
	set, err := library.Load{Dir: "testdata/none", DirOptional: true, Fallback: demo.Models()}.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range set.Models {
		fmt.Println(m.String())
	}
	fmt.Println(set.RequireReal(models.RoleVAD))
	// Output:
	// demo-whisper (standard, whisper-ggml)
	// demo-ctc (optimized, icefall-zipformer-ctc)
	// demo-vad (vad, silero-v5)
	// demo-speaker (embedder, wespeaker)
	// demo-segmenter (segmenter, pyannote-segmentation)
	// demo-tagger (tagger, yamnet)
	// model missing: role vad: expected a real model, found the demonstration model demo-vad; run `otograph models pull balanced` or pass --vad-model FILE
}

func ExampleFind() {
	entries, err := library.Find("small")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range entries {
		fmt.Printf("%-9s %s\n", e.Role, e.Name)
	}
	// Output:
	// standard  whisper-base-q8_0
	// optimized sense-voice-int8-2024-07-17
	// vad       silero-v6.2.1
	// embedder  wespeaker-ecapa512-LM
	// segmenter pyannote-segmentation-3.0
	// tagger    ced-tiny
}

// The error distinguishes a missing file from a wrong one.
func ExampleOpenFile() {
	_, err := library.OpenFile(models.RoleTagger, "none.onnx")
	fmt.Println(errors.Is(err, models.ErrMissing))
	_, err = library.OpenFile(models.RoleTagger, "catalog.json")
	fmt.Println(errors.Is(err, models.ErrBroken))
	// Output:
	// true
	// true
}
