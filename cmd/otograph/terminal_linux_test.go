package main

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otograph/otograph"
)

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there is no pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { program.Close() })
	return screen, program
}

// TestDumbTerminal: a terminal without control sequences gets none, neither of
// a bar nor of colors.
func TestDumbTerminal(t *testing.T) {
	for kind, control := range map[string]bool{"dumb": false, "xterm": true} {
		t.Run(kind, func(t *testing.T) {
			screen, program := openTerminal(t)
			t.Setenv("TERM", kind)
			assert.Equal(t, control, drawable(program))
			b := newBar(program, "a.opus", false)
			b.update(otograph.Progress{Fraction: 0.5, Stage: otograph.StageTranscribe})
			b.clear()
			_, err := program.WriteString("end")
			require.NoError(t, err)
			got := make([]byte, 4096)
			n, err := screen.Read(got)
			require.NoError(t, err)
			if control {
				assert.Contains(t, string(got[:n]), "\x1b[K")
			} else {
				assert.Equal(t, "end", string(got[:n]))
			}
		})
	}
}
