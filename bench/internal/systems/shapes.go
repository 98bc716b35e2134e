package systems

import (
	"encoding/json"
	"strings"
)

// shapes are the paths of the text in the JSON of other programs, of which only
// the text is read, in the order of preference. Lists are passed through; of
// alternatives the first counts.
var shapes = strings.Fields("results.channels.alternatives.transcript results.transcripts.transcript results.alternatives.transcript results.alternatives.content " + // Deepgram, AWS, Google and IBM, Speechmatics
	"combinedRecognizedPhrases.display combinedPhrases.text monologues.elements.value result.transcription.full_transcript transcript transcripts.transcript transcripts.words.word events.segs.utf8 chunks.text segments.body word " + // Azure, Rev, Gladia, gentle, DeepSpeech, YouTube, transformers, podcasts, words alone
	"result.text output.segments.text output.text data.text choices.message.content candidates.content.parts.text")

// alternatives are keys of lists whose first entry is the most likely one.
const alternatives = " alternatives transcripts choices candidates "

// shaped returns the text at the first of the shapes that a JSON value has.
func shaped(raw json.RawMessage) (string, bool) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "", false
	}
	for _, shape := range shapes {
		if texts := textsAt(v, strings.Split(shape, ".")); len(texts) > 0 {
			return strings.Join(texts, " "), true
		}
	}
	return "", false
}

// textsAt returns the texts at a path.
func textsAt(v any, path []string) (texts []string) {
	switch v := v.(type) {
	case string:
		if len(path) == 0 {
			texts = []string{v}
		}
	case []any:
		for _, e := range v {
			texts = append(texts, textsAt(e, path)...)
		}
	case map[string]any:
		if len(path) > 0 {
			next := v[path[0]]
			if list, ok := next.([]any); ok && len(list) > 0 && strings.Contains(alternatives, " "+path[0]+" ") {
				next = list[0]
			}
			texts = textsAt(next, path[1:])
		}
	}
	return texts
}
