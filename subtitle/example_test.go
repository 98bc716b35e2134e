package subtitle_test

import (
	"os"
	"time"

	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/subtitle"
)

func ExampleVTT() {
	_ = subtitle.VTT(os.Stdout, []subtitle.Cue{
		{Start: 0.5, End: 2, Speaker: "SPEAKER_0", Text: "Did you hear that?"},
		{Start: 2.2, End: 4, Event: true, Text: "Doorbell"},
	}, subtitle.Options{LoneSpeaker: true})
	// Output:
	// WEBVTT
	//
	// 00:00:00.500 --> 00:00:02.000
	// <v SPEAKER_0>Did you hear that?
	//
	// 00:00:02.200 --> 00:00:04.000
	// [Doorbell]
}

func ExampleWrite() {
	r := &spec.Result{Ran: spec.Capabilities{Diarize: true}, DiarizeSegments: []spec.Turn{{Start: 0.5, End: 2, Speaker: "SPEAKER_0"}}}
	_ = subtitle.Write(os.Stdout, subtitle.FormatRTTM, "meeting.wav", time.Time{}, r)
	// Output:
	// SPEAKER meeting 1 0.500 1.500 <NA> <NA> SPEAKER_0 <NA> <NA>
}
