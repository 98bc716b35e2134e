package whispercpp

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A plug-in with a failed assertion or an exception does not end the program.
func TestFailingPluginsReturnErrors(t *testing.T) {
	needLibrary(t)
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	_, err = Devices() // opens the library
	require.NoError(t, err)
	dir := t.TempDir()
	for name, body := range map[string]string{
		"assertion": `ggml_abort("plugin.c", 7, "out of luck");`,
		"exception": `_ZSt17__throw_bad_allocv();`,
		"nothing":   ``,
	} {
		source, lib := filepath.Join(dir, name+".c"), filepath.Join(dir, "lib"+name+".so")
		text := "void ggml_abort(const char *, int, const char *, ...);\nvoid _ZSt17__throw_bad_allocv(void);\n" +
			"void *ggml_backend_init(void) { " + body + " return 0; }\n"
		require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
		out, err := exec.Command(cc, "-shared", "-fPIC", "-o", lib, source).CombinedOutput()
		require.NoError(t, err, string(out))
		err = loadPlugin(lib)
		require.Error(t, err, name)
		if name == "assertion" {
			assert.ErrorContains(t, err, "out of luck")
		}
	}
	assert.Error(t, loadPlugin(filepath.Join(dir, "absent.so")))
	_, err = Devices()
	require.NoError(t, err)
}
