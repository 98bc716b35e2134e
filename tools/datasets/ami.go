package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/encoding/charmap"

	"github.com/otograph/otograph/internal/system/fetch"
)

// amiMeetings are the test part of AMI's full-corpus-ASR partition.
var amiMeetings = []string{
	"EN2002a", "EN2002b", "EN2002c", "EN2002d", "ES2004a", "ES2004b", "ES2004c", "ES2004d",
	"IS1009a", "IS1009b", "IS1009c", "IS1009d", "TS3003a", "TS3003b", "TS3003c", "TS3003d",
}

// amiTurns is the version of the turns and evaluated times that publications on
// diarization use: "only words".
const amiTurns = "67c2d539286e89f68952d5dcf83912bd9f01dfae"

// ami returns the test part of AMI, recorded by one distant microphone or mixed
// from the headsets. A dozen projects that use the annotations state their hash
// and size; none is published for the recordings.
func ami() (list []Set) {
	const base = "https://groups.inf.ed.ac.uk/ami/"
	meeting := "(" + strings.Join(amiMeetings, "|") + ")"
	for _, kind := range []struct{ name, about, signal string }{
		{"ami-sdm", "English meetings of four people, one distant microphone; the test part", "Array1-01"},
		{"ami-ihm-mix", "English meetings of four people, their headsets mixed; the test part", "Mix-Headset"},
	} {
		s := Set{
			Name: kind.name, About: kind.about, License: "CC-BY-4.0", Page: base + "corpus/", Language: "en",
			files: []source{
				{
					File: fetch.File{
						Name: "ami_public_manual_1.6.2.zip", URL: base + "AMICorpusAnnotations/ami_public_manual_1.6.2.zip", Size: 22_887_865,
						SHA256: "b56e5babb2496b8795deeeda7e71178d7fbc9963f94276cf2a3f4b56ebbc9f9d",
					},
					place: matching(`(?:^|/)(?:words|segments)/(`+meeting+`\.[A-Z]\.(?:words|segments)\.xml)$`, referencesDir+"/$1"),
				},
				{
					File:  fetch.File{Name: "AMI-diarization-setup.tar.gz", URL: "https://github.com/pyannote/AMI-diarization-setup/archive/" + amiTurns + ".tar.gz"},
					place: matching(`/only_words/rttms/test/([^/]+\.rttm)$`, referencesDir+"/$1", `/uems/test/([^/]+\.uem)$`, referencesDir+"/$1"),
				},
			},
			lines: func(folder string) ([]line, error) { return amiLines(folder, kind.signal) },
		}
		for _, m := range amiMeetings {
			file := m + "." + kind.signal + ".wav"
			s.files = append(s.files, source{
				File: fetch.File{Name: file, URL: base + "AMICorpusMirror/amicorpus/" + m + "/audio/" + file}, to: audioDir + "/" + file,
			})
		}
		list = append(list, s)
	}
	return list
}

// amiLines reads the annotations of the meetings.
func amiLines(folder, signal string) (lines []line, err error) {
	for _, m := range amiMeetings {
		sentences, err := amiSentences(folder, m)
		if err != nil {
			return nil, err
		}
		var texts []string
		for _, s := range sentences {
			texts = append(texts, s.Text)
		}
		l := line{File: audioDir + "/" + m + "." + signal + ".wav", Text: new(strings.Join(texts, " ")), Sentences: sentences}
		for path, to := range map[string]*string{referencesDir + "/" + m + ".rttm": &l.RTTM, referencesDir + "/" + m + ".uem": &l.UEM} {
			if _, err := os.Stat(filepath.Join(folder, path)); err == nil {
				*to = path
			}
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// amiSentences returns a meeting's segments with their words by start.
func amiSentences(folder, meeting string) (sentences []sentence, err error) {
	files, err := glob(folder, referencesDir+"/"+meeting+".*.segments.xml")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: expected segments of the meeting %s, found none", ErrContent, meeting)
	}
	for _, file := range files {
		var list struct {
			Segments []amiSegment `xml:"segment"`
		}
		if err := readXML(file, &list); err != nil {
			return nil, err
		}
		var words struct {
			All []amiWord `xml:",any"`
		}
		if err := readXML(strings.Replace(file, ".segments.", ".words.", 1), &words); err != nil {
			return nil, err
		}
		speaker := strings.Split(filepath.Base(file), ".")[1]
		for _, s := range list.Segments {
			if text := s.text(words.All); text != "" {
				sentences = append(sentences, sentence{Start: s.Start, End: max(s.Start, s.End), Text: text, Speaker: speaker})
			}
		}
	}
	slices.SortStableFunc(sentences, func(a, b sentence) int { return cmp.Compare(a.Start, b.Start) })
	return sentences, nil
}

// amiSegment is a piece of one person's speech: a range of their words.
type amiSegment struct {
	Start float64 `xml:"transcriber_start,attr"`
	End   float64 `xml:"transcriber_end,attr"`
	Child []struct {
		Href string `xml:"href,attr"`
	} `xml:"child"`
}

// amiWord is a word, a mark of punctuation, or a sound that is not a word.
type amiWord struct {
	XMLName     xml.Name
	ID          string `xml:"id,attr"`
	Punctuation bool   `xml:"punc,attr"`
	Text        string `xml:",chardata"`
}

var amiRange = regexp.MustCompile(`#id\(([^)]+)\)(?:\.\.id\(([^)]+)\))?$`)

// text returns the words of a segment; a spelled one (L_C_D_) with spaces.
func (s amiSegment) text(words []amiWord) string {
	var out strings.Builder
	for _, child := range s.Child {
		m := amiRange.FindStringSubmatch(child.Href)
		if m == nil {
			continue
		}
		last := cmp.Or(m[2], m[1])
		from := slices.IndexFunc(words, func(w amiWord) bool { return w.ID == m[1] })
		to := slices.IndexFunc(words, func(w amiWord) bool { return w.ID == last })
		for i := from; i >= 0 && i <= to; i++ {
			if words[i].XMLName.Local != "w" {
				continue
			}
			if !words[i].Punctuation && out.Len() > 0 {
				out.WriteByte(' ')
			}
			out.WriteString(strings.TrimSpace(strings.ReplaceAll(strings.TrimSpace(words[i].Text), "_", " ")))
		}
	}
	return out.String()
}

// readXML reads a file of AMI, which is in Latin-1.
func readXML(file string, into any) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	dec := xml.NewDecoder(io.LimitReader(f, maxReference))
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return charmap.ISO8859_1.NewDecoder().Reader(in), nil }
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrContent, filepath.Base(file), err)
	}
	return nil
}
