package subtitle_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/subtitle"
)

// result is an example of a transcription's result.
var result = &spec.Result{
	Segments: []spec.Segment{
		{Start: 5.8, End: 7.5, Speaker: "SPEAKER_0", Text: "Good morning, how are you today?"},
		{Start: 8.1, End: 11, Speaker: "SPEAKER_1", Text: "I am very well, thank you, and you?"},
	},
}

func ExampleSRT() {
	_ = subtitle.SRT(os.Stdout, subtitle.Cues(result, false), subtitle.Options{NoSpeakers: true})
	// Output:
	// 1
	// 00:00:05,800 --> 00:00:07,500
	// Good morning, how are you today?
	//
	// 2
	// 00:00:08,100 --> 00:00:11,000
	// I am very well, thank you, and you?
}

func ExampleWrite_markdown() {
	_ = subtitle.Write(os.Stdout, subtitle.FormatMarkdown, "Call.wav", time.Time{}, result)
	// Output:
	// # Call
	//
	// **SPEAKER\_0** (0:05) Good morning, how are you today?
	//
	// **SPEAKER\_1** (0:08) I am very well, thank you, and you?
}

func ExampleWrite_labels() {
	_ = subtitle.Write(os.Stdout, subtitle.FormatLabels, "Call.wav", time.Time{}, result)
	// Output:
	// 5.800	7.500	[SPEAKER_0] Good morning, how are you today?
	// 8.100	11.000	[SPEAKER_1] I am very well, thank you, and you?
}

// The file's extension selects the format.
func ExampleWriteFile() {
	dir, err := os.MkdirTemp("", "otograph-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := subtitle.WriteFile(filepath.Join(dir, "call.srt"), result); err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "call.srt"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// 1
	// 00:00:05,800 --> 00:00:07,500
	// [SPEAKER_0] Good morning,
	// how are you today?
	//
	// 2
	// 00:00:08,100 --> 00:00:11,000
	// [SPEAKER_1] I am very well,
	// thank you, and you?
}
