package deepgram

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/spec"
)

// object is a JSON object.
type object map[string]any

// alternative returns segments as a text with its words. Values that were not
// measured are 0, because clients expect numbers.
func alternative(segments []spec.Segment) object {
	text, words, sum := "", []object{}, 0.0
	for _, seg := range segments {
		text += spec.Separated(text, strings.TrimSpace(seg.Text))
		for _, w := range doors.Words(seg) {
			o := object{"word": doors.Plain(w.Word), "punctuated_word": w.Word, "start": w.Start, "end": w.End, "confidence": w.Probability}
			addSpeaker(o, seg.Speaker)
			words = append(words, o)
			sum += w.Probability
		}
	}
	return object{"transcript": text, "words": words, "confidence": sum / float64(max(1, len(words)))}
}

// addSpeaker adds a speaker's number, if it is known.
func addSpeaker(o object, name string) {
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "SPEAKER_")); err == nil {
		o["speaker"] = n
	}
}

// metadata describes the sound of a request.
func metadata(request, sha256, model string, created time.Time, seconds float64) object {
	id := modelID(model)
	return object{
		"transaction_key": "deprecated", "request_id": request, "sha256": sha256, "created": created.UTC().Format(spec.TimeFormat), "duration": seconds, "channels": 1,
		"models": []string{id}, "model_info": object{id: modelInfo(model)},
	}
}

// modelID returns the id of a model, which clients expect to be a UUID.
func modelID(name string) string { return uuid.NewSHA1(uuid.Nil, []byte(name)).String() }

func modelInfo(name string) object {
	return object{"name": name, "version": "otograph", "arch": "otograph"}
}

// Response returns the response to a recording with the hash of its bytes, ""
// if they did not come with the request.
func (q *Query) Response(request, sha256 string, created time.Time, result spec.Result) any {
	model := q.Extras.Model
	if model == "" {
		model = "otograph-" + string(result.Tier)
	}
	meta := metadata(request, sha256, model, created, result.AudioDuration)
	var warnings []object
	for _, name := range q.ignored {
		warnings = append(warnings, object{"parameter": name, "type": "unsupported_parameter", "message": "has no effect here"})
	}
	for _, w := range result.Warnings {
		warnings = append(warnings, object{"parameter": w.Option, "type": "warning", "message": w.Reason})
	}
	if warnings != nil {
		meta["warnings"] = warnings
	}
	channel := object{"alternatives": []object{alternative(result.Segments)}}
	if q.detected {
		channel["detected_language"], channel["language_confidence"] = result.Language, result.LanguageProbability
	}
	results := object{"channels": []object{channel}}
	if q.utterances {
		list := []object{}
		for _, seg := range result.Segments {
			u := alternative([]spec.Segment{seg})
			u["start"], u["end"], u["channel"], u["id"] = seg.Start, seg.End, 0, modelID(fmt.Sprint(request, seg.ID))
			addSpeaker(u, seg.Speaker)
			list = append(list, u)
		}
		results["utterances"] = list
	}
	return object{"metadata": meta, "results": results}
}

// errorCodes maps HTTP statuses to the codes of Deepgram's errors.
var errorCodes = map[int]string{
	http.StatusBadRequest: "Bad Request", http.StatusUnauthorized: "INVALID_AUTH", http.StatusPaymentRequired: "ASR_PAYMENT_REQUIRED",
	http.StatusForbidden: "INSUFFICIENT_PERMISSIONS", http.StatusRequestEntityTooLarge: "PAYLOAD_TOO_LARGE",
	http.StatusUnsupportedMediaType: "UNSUPPORTED_MEDIA_TYPE", http.StatusTooManyRequests: "TOO_MANY_REQUESTS",
}

// NewErrorBody returns the response to a request that failed with a status.
func NewErrorBody(status int, message, request string) any {
	code, ok := errorCodes[status]
	if !ok {
		code = strings.ToUpper(strings.ReplaceAll(http.StatusText(status), " ", "_"))
	}
	return object{"err_code": code, "err_msg": message, "request_id": request}
}
