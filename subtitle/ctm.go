package subtitle

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// ErrNoWordTimes is returned when CTM is written for speech without word times.
var ErrNoWordTimes = errors.New("no word times")

// writeCTM writes NIST's conversation time mark format, as scoring tools read
// it: a line per word with file, channel 1, start and duration in seconds, the
// word, and its probability. Spaces in file become "_", and sounds are omitted.
// Speech without word times is an error that wraps ErrNoWordTimes.
func writeCTM(w io.Writer, file string, cues []Cue) error {
	if err := checkWordTimes(cues); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for _, c := range clean(cues) {
		if c.Event {
			continue
		}
		for _, word := range c.Words {
			start := milliseconds(cleanTime(word.Start))
			end := max(milliseconds(cleanTime(word.End)), start)
			text := rttmField(word.Word)
			if text == "<NA>" {
				continue
			}
			fmt.Fprintf(out, "%s 1 %s %s %s %.4f\n", rttmField(file), seconds(start), seconds(end-start), text, min(max(word.Probability, 0), 1))
		}
	}
	return out.Flush()
}

// checkWordTimes returns an error that wraps ErrNoWordTimes for speech without
// word times.
func checkWordTimes(cues []Cue) error {
	for _, c := range clean(cues) {
		if !c.Event && len(c.Words) == 0 {
			return fmt.Errorf("%w: the segment at %s s", ErrNoWordTimes, seconds(milliseconds(c.Start)))
		}
	}
	return nil
}
