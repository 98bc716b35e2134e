package subtitle

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrNoWordTimes is returned when CTM is written for speech without word times.
var ErrNoWordTimes = errors.New("no word times")

// writeCTM writes NIST's conversation time mark format, as scoring tools read
// it: a line per word with file, channel 1, start and duration in seconds, the
// word, and its probability. Spaces in file become "_", and sounds are omitted.
// Speech without word times is an error that wraps ErrNoWordTimes.
func writeCTM(w io.Writer, file string, cues []Cue, notes ...string) error {
	cues = slices.DeleteFunc(clean(cues), func(c Cue) bool { return c.Event })
	if i := slices.IndexFunc(cues, func(c Cue) bool { return len(c.Words) == 0 }); i >= 0 {
		return fmt.Errorf("%w: the segment at %s s", ErrNoWordTimes, seconds(milliseconds(cues[i].Start)))
	}
	out := bufio.NewWriter(w)
	writeComments(out, notes)
	for _, c := range cues {
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
