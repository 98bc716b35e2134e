package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpuinfo")
	require.NoError(t, os.WriteFile(path, []byte("processor\t: 0\nno field\nmodel name\t: Some(R) Processor 8481C\nVmHWM:\t   16318 kB\n"), 0o600))
	var got []string
	Fields(path, func(key, value string) { got = append(got, key, value) })
	assert.Equal(t, []string{"processor", "0", "model name", "Some(R) Processor 8481C", "VmHWM", "16318 kB"}, got)
	assert.EqualValues(t, 16318, Kilobytes("16318 kB"))
	assert.Zero(t, PeakMemory("nobody"))
}
