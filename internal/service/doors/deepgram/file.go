package deepgram

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/spec"
)

// alternative returns segments as a text with its words. Values that were not
// measured are 0, because clients expect numbers.
func alternative(segments []spec.Segment) doors.Object {
	text, words, sum := "", []doors.Object{}, 0.0
	for _, seg := range segments {
		text += spec.Separated(text, strings.TrimSpace(seg.Text))
		for _, w := range doors.Words(seg) {
			o := doors.Object{"word": doors.Plain(w.Word), "punctuated_word": w.Word, "start": w.Start, "end": w.End, "confidence": w.Probability}
			if n, ok := doors.Speaker(seg.Speaker); ok {
				o["speaker"] = n
			}
			words = append(words, o)
			sum += w.Probability
		}
	}
	return doors.Object{"transcript": text, "words": words, "confidence": sum / float64(max(1, len(words)))}
}

// metadata describes the sound of a request.
func metadata(request, model string, created time.Time, seconds float64) doors.Object {
	id := modelID(model)
	return doors.Object{
		"transaction_key": "deprecated", "request_id": request, "sha256": "", "created": created.UTC().Format(spec.TimeFormat), "duration": seconds, "channels": 1,
		"models": []string{id}, "model_info": doors.Object{id: modelInfo(model)},
	}
}

// modelID returns the id of a model, which clients expect to be a UUID.
func modelID(name string) string { return uuid.NewSHA1(uuid.Nil, []byte(name)).String() }

func modelInfo(name string) doors.Object {
	return doors.Object{"name": name, "version": "otograph", "arch": "otograph"}
}

// Response returns the response to a recording.
func (q *Query) Response(request string, created time.Time, result spec.Result) any {
	model := cmp.Or(q.Extras.Model, "otograph-"+result.Tier.String())
	meta := metadata(request, model, created, result.AudioDuration)
	var warnings []doors.Object
	for _, name := range q.ignored {
		warnings = append(warnings, doors.Object{"parameter": name, "type": "unsupported_parameter", "message": "has no effect here"})
	}
	for _, w := range result.Warnings {
		warnings = append(warnings, doors.Object{"parameter": w.Option, "type": "warning", "message": w.Reason})
	}
	if warnings != nil {
		meta["warnings"] = warnings
	}
	channel := doors.Object{"alternatives": []doors.Object{alternative(result.Segments)}}
	if q.detected {
		channel["detected_language"], channel["language_confidence"] = result.Language, result.LanguageProbability
	}
	results := doors.Object{"channels": []doors.Object{channel}}
	if q.utterances {
		list := []doors.Object{}
		for _, seg := range result.Segments {
			u := alternative([]spec.Segment{seg})
			u["start"], u["end"], u["channel"], u["id"] = seg.Start, seg.End, 0, modelID(fmt.Sprint(request, seg.ID))
			if n, ok := doors.Speaker(seg.Speaker); ok {
				u["speaker"] = n
			}
			list = append(list, u)
		}
		results["utterances"] = list
	}
	return doors.Object{"metadata": meta, "results": results}
}

// errorCodes maps HTTP statuses to the codes of Deepgram's errors.
var errorCodes = map[int]string{
	http.StatusBadRequest: "Bad Request", http.StatusUnauthorized: "INVALID_AUTH", http.StatusPaymentRequired: "ASR_PAYMENT_REQUIRED",
	http.StatusForbidden: "INSUFFICIENT_PERMISSIONS", http.StatusRequestEntityTooLarge: "PAYLOAD_TOO_LARGE",
}

// NewErrorBody returns the response to a request that failed with a status.
func NewErrorBody(status int, message, request string) any {
	code := cmp.Or(errorCodes[status], strings.ToUpper(strings.ReplaceAll(http.StatusText(status), " ", "_")))
	return doors.Object{"err_code": code, "err_msg": message, "request_id": request}
}
