package realtime

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/openai"
	"github.com/otograph/otograph/spec"
)

// item is a turn: one utterance with turn detection, and otherwise the sound
// between two commits.
type item struct {
	id        string
	turn      bool // of turn detection
	list      []*utterance
	sent      string // the deltas, joined
	seconds   float64
	committed bool
}

type utterance struct {
	item    *item
	text    string
	stopped bool
	final   *spec.LiveEvent
}

func (d *Door) newItem(turn bool) *item {
	d.items++
	return &item{id: fmt.Sprintf("item_%s_%d", d.id, d.items), turn: turn}
}

// Send implements doors.Door.
func (d *Door) Send(e spec.LiveEvent) (out [][]byte) {
	u := d.of[e.Utterance]
	switch e.Kind {
	case spec.LiveSpeechStarted:
		return d.begin(e)
	case spec.LiveSpeechStopped:
		if u != nil {
			u.stopped = true
			if u.item.turn && !u.item.committed {
				u.item.seconds, d.mark = e.End-e.Start, e.End
				end := e.End + d.config.settings.Silence
				out = append(out, d.event("input_audio_buffer.speech_stopped", doors.Object{"audio_end_ms": milliseconds(end), "item_id": u.item.id}))
				out = append(out, d.commit(u.item)...)
			}
		}
	case spec.LivePartial, spec.LiveFinal:
		if u == nil {
			return nil // it was cleared
		}
		u.text = e.Text
		if e.Kind == spec.LiveFinal {
			u.final = &e
		}
		return d.progress(u.item)
	case spec.LiveCommitted:
		return d.committed(e)
	case spec.LiveCleared:
		d.mark, d.current = e.Start, nil
		maps.DeleteFunc(d.of, func(_ int, u *utterance) bool { return !u.item.committed })
		return [][]byte{d.event("input_audio_buffer.cleared", doors.Object{})}
	case spec.LiveSound:
		if *d.config.settings.Options.EnableAudioEvents {
			return [][]byte{d.event("conversation.item.sound_detection", doors.Object{
				"item_id": d.last, "content_index": 0, "start": e.Start, "end": e.End,
				"detections": []doors.Object{{"label": e.Class, "score": e.Confidence, "index": 0}},
			})}
		}
	case spec.LiveSpeakerChanged: // segments cannot be changed
	}
	return out
}

// idle counts silence. After the client's idle timeout it commits an item
// without text, once in a silence.
func (d *Door) idle(sound doors.Audio) [][]byte {
	d.received += d.config.settings.Format.Seconds(int64(len(sound)))
	seconds, limit := d.received-d.mark, d.config.detection
	if limit == nil || limit.Idle == nil || d.idled || len(d.of) > 0 || seconds < *limit.Idle/1000 {
		return nil
	}
	it := d.newItem(true)
	it.seconds, d.idled = seconds, true
	out := [][]byte{d.event("input_audio_buffer.timeout_triggered", doors.Object{"audio_start_ms": milliseconds(d.mark), "audio_end_ms": milliseconds(d.received), "item_id": it.id})}
	d.mark = d.received
	return slices.Concat(out, d.commit(it), d.progress(it))
}

func milliseconds(seconds float64) int { return int(math.Round(1000 * max(0, seconds))) }

// begin begins an utterance, and with turn detection its item.
func (d *Door) begin(e spec.LiveEvent) (out [][]byte) {
	it := d.current
	if !d.config.settings.Manual {
		it = d.newItem(true)
		padding := defaultPadding
		if p := d.config.detection.Padding; p != nil {
			padding = *p
		}
		out = append(out, d.event("input_audio_buffer.speech_started", doors.Object{"audio_start_ms": milliseconds(e.Start - padding/1000), "item_id": it.id}))
	} else if it == nil {
		it = d.newItem(false)
		d.current = it
	}
	d.idled = false
	u := &utterance{item: it}
	it.list = append(it.list, u)
	d.of[e.Utterance] = u
	return out
}

// committed handles the event that a client's commit has ended an utterance,
// unless turn detection has ended it before.
func (d *Door) committed(e spec.LiveEvent) [][]byte {
	it := d.current
	seconds := max(0, e.Start-d.mark)
	d.mark, d.current = e.Start, nil
	switch {
	case e.Utterance >= 0 && it == nil:
		return nil
	case it == nil: // nothing was spoken: an error would end the session of many clients
		it = d.newItem(false)
	}
	it.seconds = seconds
	return append(d.commit(it), d.progress(it)...)
}

// commit reports that an item is complete but for its text.
func (d *Door) commit(it *item) [][]byte {
	it.committed = true
	previous := orNull(d.last)
	d.last = it.id
	return [][]byte{
		d.event("input_audio_buffer.committed", doors.Object{"item_id": it.id, "previous_item_id": previous}),
		d.event("conversation.item.added", doors.Object{"item": it.record(nil), "previous_item_id": previous}),
	}
}

// record returns the item as clients see it, with its transcript, or nil.
func (it *item) record(transcript any) doors.Object {
	status := "in_progress"
	if transcript != nil {
		status = "completed"
	}
	return doors.Object{
		"id": it.id, "object": "realtime.item", "type": "message", "status": status, "role": "user",
		"content": []doors.Object{{"type": "input_audio", "transcript": transcript}},
	}
}

// progress sends the new text of an item, and its end.
func (d *Door) progress(it *item) (out [][]byte) {
	text, done := "", it.committed
	var segments []spec.Segment
	languages := []map[string]string{}
	for _, u := range it.list {
		text += spec.Separated(text, u.text)
		if u.final == nil {
			done = false
			break // later texts wait for the rest of this text
		}
		segments = append(segments, u.final.Segments...)
		if l := u.final.Language; l != "" && u.text != "" && !slices.ContainsFunc(languages, func(c map[string]string) bool { return c["code"] == l }) {
			languages = append(languages, map[string]string{"code": l})
		}
	}
	transcript := func(kind string, fields doors.Object) {
		fields["item_id"], fields["content_index"] = it.id, 0
		out = append(out, d.event("conversation.item.input_audio_transcription."+kind, fields))
	}
	if delta, grows := strings.CutPrefix(text, it.sent); grows && delta != "" {
		it.sent = text
		transcript("delta", doors.Object{"delta": delta})
	}
	if !done {
		return out
	}
	if *d.config.settings.Options.EnableDiarize {
		for _, s := range segments {
			transcript("segment", doors.Object{"id": fmt.Sprintf("seg_%d", s.ID), "text": s.Text, "speaker": s.Speaker, "start": s.Start, "end": s.End})
		}
	}
	fields := doors.Object{"transcript": text, "languages": languages, "usage": doors.Object{"type": "duration", "seconds": math.Round(100*it.seconds) / 100}}
	if slices.Contains(d.config.include, "item.input_audio_transcription.logprobs") {
		fields["logprobs"] = openai.Logprobs(segments)
	}
	transcript("completed", fields)
	out = append(out, d.event("conversation.item.done", doors.Object{"item": it.record(text)}))
	maps.DeleteFunc(d.of, func(_ int, u *utterance) bool { return u.item == it })
	return out
}
