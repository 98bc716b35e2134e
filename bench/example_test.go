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
		"SPEAKER call 1 0.00 5.00 <NA> <NA> anna <NA> <NA>\nSPEAKER call 1 5.00 5.00 <NA> <NA> ben <NA> <NA>\n"))
	if err != nil {
		log.Fatal(err)
	}
	hypothesis := []bench.SpeakerTurn{{Start: 0, End: 6, Speaker: "SPEAKER_0"}, {Start: 6, End: 10, Speaker: "SPEAKER_1"}}
	d := bench.ScoreTurns(reference, hypothesis, bench.DEROptions{})
	fmt.Printf("%.0f %%, SPEAKER_0 is %s\n", 100*d.Rate(), d.Mapping["SPEAKER_0"])
	// Output: 10 %, SPEAKER_0 is anna
}
