package bench_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/otograph/otograph/bench"
)

// Compute a word error rate by the rules of the benchmark.
func ExampleCompareWords() {
	reference := bench.Units("en", "The telephone is ringing.")
	hypothesis := bench.Units("en", "the telephone was ringing again")
	e := bench.CompareWords(reference, hypothesis)
	fmt.Printf("%d of %d words, %.0f %%\n", e.Errors(), e.Reference, 100*e.Rate())
	// Output: 2 of 4 words, 50 %
}

// Chinese is scored by characters; case, width and punctuation are ignored.
func ExampleUnits() {
	fmt.Printf("%q\n", bench.Units("zh", "你好，世界！"))
	fmt.Printf("%q\n", bench.Units("en", "Ｈello, world!"))
	// Output:
	// ["你" "好" "世" "界"]
	// ["hello" "world"]
}

// Compute a diarization error rate; the names of the speakers do not matter.
func ExampleScoreTurns() {
	reference, err := bench.ReadRTTM(strings.NewReader(
		"SPEAKER call 1 0.00 5.00 <NA> <NA> anna <NA> <NA>\nSPEAKER call 1 5.00 5.00 <NA> <NA> ben <NA> <NA>\n"), "call")
	if err != nil {
		log.Fatal(err)
	}
	hypothesis := []bench.SpeakerTurn{{Start: 0, End: 6, Speaker: "SPEAKER_0"}, {Start: 6, End: 10, Speaker: "SPEAKER_1"}}
	d := bench.ScoreTurns(reference, hypothesis, bench.DEROptions{})
	fmt.Printf("%.0f %%, SPEAKER_0 is %s\n", 100*d.Rate(), d.Mapping["SPEAKER_0"])
	// Output: 10 %, SPEAKER_0 is anna
}

// A figure over few recordings has an interval.
func ExampleBootstrap() {
	errors, words := []float64{1, 0, 3, 2}, []float64{10, 12, 9, 11}
	e := bench.Bootstrap(len(words), 1, func(sample []int) float64 {
		var wrong, all float64
		for _, i := range sample {
			wrong += errors[i]
			all += words[i]
		}
		return wrong / all
	})
	fmt.Printf("%.3f of %d recordings, interval contains it: %v\n", e.Value, e.N, e.Low <= e.Value && e.Value <= e.High)
	// Output: 0.143 of 4 recordings, interval contains it: true
}

// Sounds are compared in segments of one second.
func ExampleScoreEvents() {
	reference := []bench.EventSpan{{Start: 0, End: 4, Class: "Music"}}
	hypothesis := []bench.EventSpan{{Start: 0, End: 3, Class: "Music"}}
	e := bench.ScoreEvents(reference, hypothesis, nil)
	fmt.Printf("precision %.2f, recall %.2f\n", e.Precision(), e.Recall())
	// Output: precision 1.00, recall 0.75
}
