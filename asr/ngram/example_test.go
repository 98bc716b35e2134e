package ngram_test

import (
	"fmt"
	"log"

	"github.com/otograph/otograph/asr/ngram"
)

// A language model in the ARPA format prefers the words that it knows.
func ExampleParse() {
	arpa := `\data\
ngram 1=4
ngram 2=1

\1-grams:
-1.0 <s> -0.3
-1.0 </s>
-2.0 <unk>
-0.5 hello -0.2

\2-grams:
-0.1 <s> hello

\end\
`
	model, err := ngram.Parse("hello.arpa", []byte(arpa))
	if err != nil {
		log.Fatal(err)
	}
	tokens := [][]byte{[]byte(" hello"), []byte(" hullo")}
	scorer := ngram.NewScorer(model, tokens)
	hello := scorer.Finish(scorer.Step(scorer.Begin(), 0))
	hullo := scorer.Finish(scorer.Step(scorer.Begin(), 1))
	fmt.Println(hello > hullo)
	// Output: true
}
