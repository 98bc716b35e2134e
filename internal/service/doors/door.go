// Package doors serves live sessions over interfaces of several vendors. A Door
// translates one of them: the client's messages into actions, a session's
// events into messages. Serve runs a session between a connection and a Door.
// No door knows another.
package doors

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/otograph/otograph/spec"
)

// Settings are the terms of a session.
type Settings struct {
	Options   spec.Options `json:"options"`
	Extras    spec.Extras  `json:"extras"`
	Format    Format       `json:"format"`
	Revisable bool         `json:"revisable"` // as in live.Options
	Manual    bool         `json:"manual"`    // as in live.Options
	Careful   bool         `json:"careful"`   // as in live.Options
	Silence   float64      `json:"silence"`   // as in live.Options; seconds
}

// Format is the form of the client's sound.
type Format struct {
	Encoding string `json:"encoding"` // s16le, f32le, mulaw or alaw, as in audio.NewFeed
	Rate     int    `json:"rate"`     // Hz
	Channels int    `json:"channels"`
	Opus     string `json:"-"` // "", or "packets", one a message, or a "stream", Ogg or WebM, which Unpack decodes
}

// UsualRate returns the sample rate of an encoding where a client states none,
// in Hz: G.711's, else 16 kHz.
func UsualRate(encoding string) float64 {
	if encoding == "mulaw" || encoding == "alaw" {
		return 8000
	}
	return 16000
}

// Frame returns the number of bytes of one sample of all channels.
func (f Format) Frame() int {
	width := map[string]int{"s16le": 2, "f32le": 4}[f.Encoding]
	return max(width, 1) * max(f.Channels, 1)
}

// Seconds returns the length of a number of bytes.
func (f Format) Seconds(bytes int64) float64 {
	return float64(bytes) / float64(f.Frame()*max(f.Rate, 1))
}

// Bytes returns the number of bytes of whole frames in some seconds.
func (f Format) Bytes(seconds float64) int {
	return int(math.Round(seconds*float64(f.Rate))) * f.Frame()
}

// Action is an Audio, Configure, Commit, Clear or Finish.
type Action interface{ action() }

// Audio is sound of the Format of the Settings.
type Audio []byte

// Configure sets the terms of a session. It comes before the first Audio. A
// later Configure changes Manual, Careful, Silence, Format, the language and
// the expected words; the other terms stay.
type Configure struct{ Settings }

// Commit ends the utterance that continues. A LiveCommitted event follows.
type Commit struct{}

// Clear drops the sound since the end of the last utterance, which then has no
// text. A LiveCleared event follows.
type Clear struct{}

// Finish ends the session after the text of all its sound.
type Finish struct{}

func (Audio) action()     {}
func (Configure) action() {}
func (Commit) action()    {}
func (Clear) action()     {}
func (Finish) action()    {}

// Door translates one interface. Serve calls its methods one at a time.
type Door interface {
	// Begin returns the first messages.
	Begin() [][]byte
	// Receive takes a message of the client: text or binary. An error ends the
	// session as Invalid; its text is for the client.
	Receive(text bool, data []byte) (actions []Action, replies [][]byte, err error)
	// Send returns the messages for an event.
	Send(e spec.LiveEvent) [][]byte
	// End returns the last messages, and the code and reason with which the
	// connection is closed.
	End(e End) (messages [][]byte, code int, reason string)
}

// Session is the work of a session. Its methods wait while the models are too
// far behind.
type Session interface {
	Write(ctx context.Context, data []byte) error
	Configure(ctx context.Context, s Settings) error
	Commit(ctx context.Context) error
	Clear(ctx context.Context) error
	// Events yields the events until the session has ended, and then its error.
	Events() iter.Seq2[spec.LiveEvent, error]
	// Close ends the sound, waits for its text and returns the result.
	Close() (*spec.Result, error)
}

// Opener opens the session of a connection, at its first sound. It may return an
// *EndError; other errors are the service's fault.
type Opener func(ctx context.Context, s Settings) (Session, error)

// Reason is the reason why a session ends.
type Reason int

// The reasons.
const (
	Finished Reason = iota // the client has finished it
	Gone                   // the client has gone
	Invalid                // a message of the client was wrong
	Slow                   // the client does not read its messages
	Idle                   // the client has sent nothing for long
	Expired                // the longest time of a session is over
	Unpaid                 // the balance is used up
	Canceled               // an operator has ended it
	Limited                // the account has too many sessions or tasks
	Full                   // the service has too many sessions
	Draining               // the server stops
	Fault                  // the service has failed
)

// closeCodes are the WebSocket close codes of the reasons: 1000 normal closure,
// 1001 going away, 1008 policy violation, 1011 internal error, 1012 service
// restart, 1013 try again later.
var closeCodes = [...]int{
	Finished: 1000, Gone: 1000, Invalid: 1008, Slow: 1008, Idle: 1001, Expired: 1001, Unpaid: 1008, Canceled: 1008, Limited: 1013, Full: 1013, Draining: 1012, Fault: 1011,
}

// Code returns the WebSocket close code of a reason.
func (r Reason) Code() int { return closeCodes[r] }

// End describes the end of a session.
type End struct {
	Reason  Reason
	Text    string        // a sentence for the client; "" for Finished and Gone
	Seconds float64       // of the sound that came
	Lasted  time.Duration // of the connection
	Result  *spec.Result  // nil without sound, and after a Fault
}

// EndError ends a session for a reason. Its text is for the client.
type EndError struct {
	Reason Reason
	Text   string
}

// Error implements error.
func (e *EndError) Error() string { return e.Text }

// Failure returns the end of a session for an error, with its reason.
func Failure(err error) *EndError {
	e := &EndError{Fault, "the service failed; what was transcribed is kept"}
	errors.As(err, &e)
	return e
}
