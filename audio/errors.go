package audio

import (
	"errors"
	"fmt"

	"github.com/otograph/otograph/spec"
)

// Errors of a recording. Test with errors.Is. spec.IsPermanent reports true for
// them, because retrying doesn't help.
var (
	ErrUnsupported = spec.Permanent(errors.New("unsupported audio format"))
	ErrTooSmall    = spec.Permanent(errors.New("audio file too small"))
	ErrTooLarge    = spec.Permanent(errors.New("audio file too large"))
	ErrTooLong     = spec.Permanent(errors.New("audio too long"))
	ErrCorrupt     = spec.Permanent(errors.New("damaged or incomplete recording"))
	ErrNoAudio     = spec.Permanent(errors.New("no audio in the file"))
)

// ErrDecoderMissing is returned for a recording that needs ffmpeg on a machine
// without it. It is not permanent; neither is spec.ErrSlow.
var ErrDecoderMissing = errors.New("audio decoder missing")

// fault returns an error about a source, whose name may contain anything.
func fault(kind error, name, format string, args ...any) error {
	return fmt.Errorf("audio: %q: %w: %s", name, kind, fmt.Sprintf(format, args...))
}

// machineError wraps an error of the machine.
func machineError(name, doing string, err error) error {
	return fmt.Errorf("audio: %q: %s: %w", name, doing, err)
}
