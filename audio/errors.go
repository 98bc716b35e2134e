package audio

import (
	"errors"
	"fmt"
)

// What can be wrong with a recording or with the machine. Test with errors.Is.
var (
	ErrUnsupported    = errors.New("unsupported audio format")
	ErrTooSmall       = errors.New("audio file too small")
	ErrTooLarge       = errors.New("audio file too large")
	ErrTooLong        = errors.New("audio too long")
	ErrCorrupt        = errors.New("damaged or incomplete recording")
	ErrNoAudio        = errors.New("no audio in the file")
	ErrDecoderMissing = errors.New("audio decoder missing")
	ErrTimeout        = errors.New("decoding took too long")
)

// Permanent says whether err is the input's fault: trying again cannot help. Trouble of the machine (a missing decoder, a full disk,
// a failed read, a cancelled context, a decoder that ran into the wall clock) is not permanent.
func Permanent(err error) bool {
	for _, kind := range []error{ErrUnsupported, ErrTooSmall, ErrTooLarge, ErrTooLong, ErrCorrupt, ErrNoAudio} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// fault is an error of the given kind about the named source. The name is quoted: it comes from outside and may hold anything.
func fault(kind error, name, format string, args ...any) error {
	return fmt.Errorf("audio: %q: %w: %s", name, kind, fmt.Sprintf(format, args...))
}

// trouble wraps an error of the machine.
func trouble(name, doing string, err error) error {
	return fmt.Errorf("audio: %q: %s: %w", name, doing, err)
}
