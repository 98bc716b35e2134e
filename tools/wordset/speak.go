package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// manner is the speaking style of a recording's voice.
type manner struct {
	rate, pitch int     // espeak-ng's
	stretch     float64 // factor of durations, for the other synthesizers
}

// speakers are the synthesizers; espeak-ng and flite are called through small C
// programs, which are built first.
type speakers struct{ dir string }

func newSpeakers(dir string) (*speakers, error) {
	for name, libraries := range map[string][]string{
		"espeak_words": {"-lespeak-ng"},
		"flite_words":  {"-lflite_cmu_us_rms", "-lflite_cmu_us_slt", "-lflite_cmu_us_awb", "-lflite_cmu_us_kal16", "-lflite_usenglish", "-lflite_cmulex", "-lflite", "-lm"},
	} {
		source := filepath.Join("tools", "ref", name+".c")
		if err := command(exec.Command("cc", append([]string{"-O2", "-o", filepath.Join(dir, name), source}, libraries...)...)); err != nil {
			return nil, err
		}
	}
	return &speakers{dir}, nil
}

// say synthesizes a sentence and returns the sound at 16 kHz with the times of
// the words.
func (s *speakers) say(v voice, how manner, text string) ([]float32, []word, error) {
	sound := filepath.Join(s.dir, "sound.s16")
	var report bytes.Buffer
	var c *exec.Cmd
	switch v.engine {
	case "espeak":
		c = exec.Command(filepath.Join(s.dir, "espeak_words"), v.name, fmt.Sprint(how.rate), fmt.Sprint(how.pitch), "50", sound)
		c.Stdin = strings.NewReader(text)
	case "flite":
		c = exec.Command(filepath.Join(s.dir, "flite_words"), v.name, fmt.Sprintf("%.2f", how.stretch), sound)
		c.Stdin = strings.NewReader(text)
	case "festival":
		c = exec.Command("festival", "--pipe")
		c.Stdin = strings.NewReader(fmt.Sprintf(festivalScript, v.name, how.stretch, text, sound))
	default:
		return nil, nil, errors.New("no such synthesizer")
	}
	c.Stdout = &report
	if err := command(c); err != nil {
		return nil, nil, err
	}
	samples, err := os.ReadFile(sound)
	if err != nil {
		return nil, nil, err
	}
	words, hz, err := readReport(v.engine, report.String(), text, len(samples)/2)
	if err != nil {
		return nil, nil, err
	}
	x, err := resample(sound, hz)
	return x, words, err
}

// festivalScript prints the same format as flite_words.
const festivalScript = `(voice_%s)
(Parameter.set 'Duration_Stretch %.2f)
(set! u (utt.synth (Utterance Text "%s")))
(utt.save.wave u "%s" 'raw)
(format t "rate %%d\n" (cadr (assoc 'sample_rate (wave.info (utt.wave u)))))
(mapcar (lambda (w) (format t "word %%f %%f %%s\n" (item.feat w "word_start") (item.feat w "word_end") (item.name w)))
  (utt.relation.items u 'Word))
`

// readReport reads the lines of the C programs. Words that the synthesizer
// reports differently from their spelling (numbers, contractions) are an error
// if their order is unclear.
func readReport(engine, report, text string, samples int) (words []word, hz float64, err error) {
	var begins []float64
	rest := text
	for l := range strings.Lines(report) {
		l = strings.TrimSpace(l)
		var a, b float64
		var name string
		switch {
		case strings.HasPrefix(l, "rate "):
			_, err = fmt.Sscanf(l, "rate %f", &hz)
		case engine == "espeak" && strings.HasPrefix(l, "word "):
			var from, n int
			if _, err = fmt.Sscanf(l, "word %f %d %d", &a, &from, &n); err == nil {
				if name, err = cut(text, from, n); err == nil {
					words = append(words, word{Start: a / hz, Word: name})
					begins = append(begins, a/hz)
				}
			}
		case strings.HasPrefix(l, "end "):
			_, err = fmt.Sscanf(l, "end %f", &a)
			begins = append(begins, a/hz)
		case strings.HasPrefix(l, "word "):
			if _, err = fmt.Sscanf(l, "word %f %f %s", &a, &b, &name); err == nil {
				at := strings.Index(strings.ToLower(rest), strings.ToLower(name))
				if at < 0 || strings.HasPrefix(name, "'") {
					continue // a word spelled differently from how it is spoken
				}
				rest = rest[at+len(name):]
				if tail := strings.IndexAny(rest, " "); tail > 0 && rest[0] == '\'' {
					name += rest[:tail]
				}
				if b <= a { // flite does not report the end of a clitic
					b = 0
				}
				words = append(words, word{Start: a, End: b, Word: name})
			}
		}
		if err != nil {
			return nil, 0, fmt.Errorf("report %q: %w", l, err)
		}
	}
	if hz == 0 || len(words) == 0 {
		return nil, 0, fmt.Errorf("it reports no words: %q", report)
	}
	begins = append(begins, float64(samples)/hz)
	if last := words[len(words)-1]; last.Start >= float64(samples)/hz {
		return nil, 0, fmt.Errorf("%s begins at %.2f s, after the end of the sound", last.Word, last.Start)
	}
	for i := range words {
		for _, t := range begins {
			if words[i].End == 0 && t > words[i].Start {
				words[i].End = t
			}
		}
	}
	return words, hz, nil
}

// resample resamples raw samples to 16 kHz and scales them to a peak of 0.4.
func resample(path string, hz float64) ([]float32, error) {
	var out bytes.Buffer
	c := exec.Command("ffmpeg", "-v", "error", "-f", "s16le", "-ar", fmt.Sprint(int(hz)), "-ac", "1", "-i", path,
		"-af", "aresample=resampler=soxr", "-ar", fmt.Sprint(rate), "-f", "f32le", "-")
	c.Stdout = &out
	if err := command(c); err != nil {
		return nil, err
	}
	x := make([]float32, out.Len()/4)
	var top float32
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(out.Bytes()[4*i:]))
		top = max(top, float32(math.Abs(float64(x[i]))))
	}
	for i := range x {
		x[i] *= 0.4 / max(top, 1e-3)
	}
	return x, nil
}

func floatBytes(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}
