package datasets

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/files/textfile"
	"github.com/otograph/otograph/internal/system/fetch"
)

// earningsCommit is the version of Rev's repository.
const earningsCommit = "c05ab6fd8b4b627d123c922a22a39e993dd37635"

// pointersDir holds the pointers of Git LFS; the finished folder has none.
const pointersDir = "pointers"

// earnings22 returns Earnings-22. The archive of the repository has the texts,
// and a pointer with size and hash for each recording.
func earnings22() Set {
	return Set{
		Name: "earnings22", About: "English calls of companies from 27 countries, many accents, up to two hours long", License: "CC-BY-SA-4.0",
		Page: "https://github.com/revdotcom/speech-datasets/tree/main/earnings22", Hours: 119, Language: "en",
		files: []source{{
			File: fetch.File{Name: "speech-datasets.tar.gz", URL: "https://github.com/revdotcom/speech-datasets/archive/" + earningsCommit + ".tar.gz"},
			place: matching(
				`/earnings22/media/([^/]+\.mp3)$`, pointersDir+"/$1",
				`/earnings22/transcripts/nlp_references/([^/]+\.nlp)$`, referencesDir+"/$1",
				`/earnings22/(metadata\.csv)$`, referencesDir+"/$1"),
		}},
		more:  earningsMedia,
		lines: earningsLines,
	}
}

// earningsMedia returns the recordings that the repository's pointers name.
func earningsMedia(folder string) (files []source, err error) {
	pointers, err := glob(folder, pointersDir+"/*.mp3")
	if err != nil {
		return nil, err
	}
	for _, file := range pointers {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(file)
		address := "https://media.githubusercontent.com/media/revdotcom/speech-datasets/" + earningsCommit + "/earnings22/media/" + url.PathEscape(name)
		f := fetch.File{Name: name, URL: address}
		if !readPointer(data, &f) {
			return nil, fmt.Errorf("%w: earnings22/media/%s: expected a pointer of Git LFS, found %d bytes", ErrContent, name, len(data))
		}
		files = append(files, source{File: f, to: audioDir + "/" + name})
	}
	return files, nil
}

// earningsLines reads the texts.
func earningsLines(folder string) (lines []line, err error) {
	about, err := earningsTable(filepath.Join(folder, referencesDir, "metadata.csv"))
	if err != nil {
		return nil, err
	}
	files, err := glob(folder, referencesDir+"/*.nlp")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".nlp")
		text, speakers, err := readNLP(file)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line{
			File: audioDir + "/" + name + ".mp3", Text: &text, Speakers: &speakers,
			Country: about[name]["Country by Ticker"], Accent: about[name]["Language Family + Area Based"],
		})
	}
	return lines, nil
}

// earningsTable reads the table of the calls, by file.
func earningsTable(file string) (map[string]map[string]string, error) {
	text, err := textfile.Read(file, maxReference)
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) < 2 {
		return nil, fmt.Errorf("%w: metadata.csv: expected a table: %w", ErrContent, cmp.Or(err, csv.ErrFieldCount))
	}
	table := map[string]map[string]string{}
	for _, row := range rows[1:] {
		fields := map[string]string{}
		for i, value := range row {
			fields[rows[0][i]] = value
		}
		table[row[0]] = fields
	}
	return table, nil
}

// readNLP reads Rev's format: a head that names the columns, then a line for
// each token, with its punctuation in another column. It returns the text and
// the number of speakers.
func readNLP(file string) (text string, speakers int, err error) {
	all, err := textfile.Read(file, maxReference)
	if err != nil {
		return "", 0, err
	}
	head, rows, _ := strings.Cut(all, "\n")
	columns := strings.Split(strings.TrimSpace(head), "|")
	token, speaker, punctuation := slices.Index(columns, "token"), slices.Index(columns, "speaker"), slices.Index(columns, "punctuation")
	if token < 0 || speaker < 0 || punctuation < 0 {
		return "", 0, fmt.Errorf("%w: %s: expected the columns token, speaker and punctuation, found %q", ErrContent, filepath.Base(file), head)
	}
	var words []string
	who := map[string]bool{}
	for row := range strings.Lines(rows) {
		field := strings.Split(strings.TrimRight(row, "\r\n"), "|")
		if len(field) == 1 && field[0] == "" {
			continue
		}
		if len(field) < len(columns) {
			return "", 0, fmt.Errorf("%w: %s: expected %d columns, found %q", ErrContent, filepath.Base(file), len(columns), row)
		}
		words = append(words, field[token]+field[punctuation])
		who[field[speaker]] = true
	}
	return strings.Join(words, " "), len(who), nil
}
