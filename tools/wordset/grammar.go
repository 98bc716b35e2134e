package main

import (
	"bufio"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// grammar is a list of sentences with slots, in the format of
// tools/training/asr: {slot}, [a|b], and lines "@slot: a|b".
type grammar struct {
	slots  map[string][]string
	frames []string
}

func readGrammar(path string) (*grammar, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	g := &grammar{slots: map[string][]string{}}
	in := bufio.NewScanner(f)
	for in.Scan() {
		text := strings.TrimSpace(in.Text())
		switch {
		case text == "" || text[0] == '#':
		case text[0] == '@':
			name, values, ok := strings.Cut(text[1:], ":")
			if !ok {
				return nil, fmt.Errorf("%s: expected @slot: a|b, found %q", path, text)
			}
			for v := range strings.SplitSeq(values, "|") {
				g.slots[strings.TrimSpace(name)] = append(g.slots[strings.TrimSpace(name)], strings.TrimSpace(v))
			}
		default:
			g.frames = append(g.frames, text)
		}
	}
	return g, in.Err()
}

var (
	choice = regexp.MustCompile(`\[([^\[\]]*)\]`)
	slot   = regexp.MustCompile(`\{(\w+)\}`)
	spaces = regexp.MustCompile(`\s+`)
	closed = regexp.MustCompile(`\s+([.,?!])`)
)

// expand fills in choices and slots and capitalizes the first letter.
func (g *grammar) expand(s string, r *rand.Rand) string {
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	for {
		if m := choice.FindStringSubmatchIndex(s); m != nil {
			s = s[:m[0]] + pick(strings.Split(s[m[2]:m[3]], "|")) + s[m[1]:]
		} else if m := slot.FindStringSubmatchIndex(s); m != nil {
			s = s[:m[0]] + pick(g.slots[s[m[2]:m[3]]]) + s[m[1]:]
		} else {
			break
		}
	}
	s = closed.ReplaceAllString(strings.TrimSpace(spaces.ReplaceAllString(s, " ")), "$1")
	for i, c := range s {
		if unicode.IsLetter(c) {
			return s[:i] + string(unicode.ToUpper(c)) + s[i+len(string(c)):]
		}
	}
	return s
}

// sentence draws a sentence that is not too short: one held out from training
// (texts.py, heldout: one in 20 by its hash), or one of the others.
func (g *grammar) sentence(r *rand.Rand, training bool) string {
	for {
		frame := g.frames[r.IntN(len(g.frames))]
		if !strings.Contains(frame, "{") {
			continue
		}
		text := g.expand(frame, r)
		sum := md5.Sum([]byte(text))
		n, _ := strconv.ParseUint(hex.EncodeToString(sum[:4]), 16, 32) // four bytes are eight hexadecimal digits
		if (n%20 == 0) != training && len(text) > 15 {
			return text
		}
	}
}
