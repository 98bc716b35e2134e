package openai

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/spec"
)

// field names a field of a form independently of the client's way of writing
// it: keywords, keywords[] and keywords[0] are one list,
// chunking_strategy[type] and chunking_strategy.type one member of an object.
type field struct {
	name   string
	member string // of the object, "" for the whole
	entry  bool   // the text is one entry of a list
	number int    // index in the list, -1 if the entry is not numbered
}

var writtenName = regexp.MustCompile(`^([^\[\].]+)(?:\[([^\[\]]*)\]|\.([^\[\].]+))?$`)

func readName(written string) field {
	parts := writtenName.FindStringSubmatch(written)
	if parts == nil {
		return field{name: written, number: -1}
	}
	f := field{name: parts[1], member: parts[3], number: -1}
	if strings.HasSuffix(written, "]") {
		f.entry = true
		if n, err := strconv.ParseUint(parts[2], 10, 16); err == nil {
			f.number = int(n)
		} else {
			f.member = parts[2]
		}
	}
	return f
}

// listFields may be repeated; if true, their entries contain no commas. Only
// transcriptions have them.
var listFields = map[string]bool{
	"timestamp_granularities": true, "include": true, "languages": true,
	"keywords": false, "known_speaker_names": false, referencesName: false,
}

// entries returns the entries in a field's text: a single entry, a JSON array,
// or entries separated by commas.
func (f field) entries(text string) []string {
	var list []string
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &list) == nil:
	case f.entry && !listFields[f.name]:
		return []string{text}
	default:
		list = strings.Split(text, ",")
	}
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return slices.DeleteFunc(list, func(entry string) bool { return entry == "" })
}

// number parses a number in any notation.
func number(name, text, want string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0, badField(name, "must be %s, not %q", want, spec.Shorten(text))
	}
	return n, nil
}
