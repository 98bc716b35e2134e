package library_test

import (
	"errors"
	"fmt"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/models/published"
)

// Build a set from a folder that need not exist and a fallback.
func ExampleLoad() {
	set, err := library.Load{Dir: "testdata/none", DirOptional: true, Fallback: published.Models()}.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range set.Models {
		fmt.Println(m.String())
	}
	// Output:
	// silero-v6.2.1 (vad, silero-v5)
	// campplus-zh-en (embedder, 3d-speaker)
	// pyannote-segmentation-3.0 (segmenter, pyannote-segmentation)
	// yamnet (tagger, yamnet-patches)
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
