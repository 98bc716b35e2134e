package spec_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/spec"
)

// foreign is an error of another package that knows whether it is permanent.
type foreign bool

func (f foreign) Error() string   { return "foreign" }
func (f foreign) Permanent() bool { return bool(f) }

func TestPermanent(t *testing.T) {
	assert.NoError(t, spec.Permanent(nil))
	kind := spec.Permanent(errors.New("not audio"))
	marked := spec.Permanent(io.ErrUnexpectedEOF)
	assert.ErrorIs(t, marked, io.ErrUnexpectedEOF)
	assert.ErrorIs(t, fmt.Errorf("a.wav: %w", kind), kind, "a marked error serves as a sentinel")
	assert.EqualError(t, kind, "not audio")
	for err, want := range map[error]bool{
		nil: false, io.ErrUnexpectedEOF: false, foreign(false): false,
		kind: true, foreign(true): true,
		fmt.Errorf("a.wav: %w", kind):                  true,
		errors.Join(io.ErrUnexpectedEOF, marked):       true,
		&spec.OptionError{Field: "x", Reason: "y"}:     true,
		&spec.StageError{Stage: "decode", Err: marked}: true,
	} {
		assert.Equal(t, want, spec.IsPermanent(err), "%v", err)
	}
}
