package whisper

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench/shape"
)

// TestKernelsComputeTheSame builds a program that compares the kernels with sums of
// doubles, for every instruction set that this processor has.
func TestKernelsComputeTheSame(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("there are kernels for x86-64 only")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	program := filepath.Join(t.TempDir(), "check")
	out, err := exec.Command(cc, "-O2", "-Wall", "-Wextra", "-o", program, "testdata/kernels_check.c", "kernels_x86.c", "kernels_quants.c", "-lm").CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

// TestKernelsFitGGML expects the kernels wherever the processor has AVX2: a ggml that
// lays its plug-ins out differently would quietly do without them.
func TestKernelsFitGGML(t *testing.T) {
	needLibrary(t)
	l, err := OpenLibrary()
	require.NoError(t, err)
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || runtime.GOARCH != "amd64" || os.Getenv(EnvKernels) != "" {
		t.Skip("the processor's instructions are not known, or not asked for")
	}
	want := ""
	switch {
	case hasFlags(string(info), "avx512f", "avx2", "fma", "f16c"):
		want = "avx512"
	case hasFlags(string(info), "avx2", "fma", "f16c"):
		want = "avx2"
	}
	assert.Equal(t, want, l.Kernels)
}

// TestKernelsKeepTheText transcribes with ggml's code and with each set of kernels.
func TestKernelsKeepTheText(t *testing.T) {
	needLibrary(t)
	before := os.Getenv(EnvKernels)
	t.Cleanup(func() {
		t.Setenv(EnvKernels, before)
		_, err := openKernels()
		require.NoError(t, err)
	})
	pcm, speech := together(t, 1, clips[:2]...)
	o := asr.DefaultOptions()
	o.Language = "en"
	var texts []map[string]bool
	for _, set := range []string{"off", "avx2", "avx512"} {
		t.Setenv(EnvKernels, set)
		if _, err := openKernels(); err != nil {
			require.ErrorContains(t, err, "lacks these instructions")
			continue
		}
		_, before := computed()
		e := openDemo(t)
		transcript, err := e.Transcribe(context.Background(), pcm, speech, o)
		require.NoError(t, err)
		words := map[string]bool{}
		for _, s := range transcript.Segments {
			for _, w := range strings.Fields(s.Text) {
				words[w] = true
			}
		}
		require.Greater(t, len(words), 5)
		texts = append(texts, words)
		_, after := computed()
		assert.Equal(t, set != "off", after > before, set)
	}
	for _, words := range texts[1:] { // sums differ in their last bits, and with them a doubtful word may
		same := 0
		for w := range words {
			if texts[0][w] {
				same++
			}
		}
		assert.Greater(t, same, len(texts[0])*4/5, "%v: %v", texts[0], words)
	}
	t.Setenv(EnvKernels, "sse")
	_, err := openKernels()
	assert.ErrorContains(t, err, `OTOGRAPH_KERNELS: expected off, avx2 or avx512, found "sse"`)
}

// TestKernelsComputeProducts decodes with a model of 16-bit weights, whose products
// the kernels take.
func TestKernelsComputeProducts(t *testing.T) {
	needLibrary(t)
	l, err := OpenLibrary()
	require.NoError(t, err)
	if l.Kernels == "" {
		t.Skip("no kernels for this processor")
	}
	h := testHeader
	h.Type = 1
	e := open(t, buildModel(h, say(0.0, " Alpha", " beta", ".", 1.0)), Options{})
	pcm, speech := far(1, 0.2, 1.2)
	o := asr.DefaultOptions()
	o.Language = "en"
	products, attentions := computed()
	transcript, err := e.Transcribe(context.Background(), pcm, speech, o)
	require.NoError(t, err)
	require.Len(t, transcript.Segments, 1)
	assert.Equal(t, "Alpha beta.", transcript.Segments[0].Text)
	p, a := computed()
	assert.Greater(t, p, products)
	assert.Greater(t, a, attentions)
}

// hasFlags reports whether /proc/cpuinfo names all of these instructions.
func hasFlags(info string, wanted ...string) bool {
	for line := range strings.Lines(info) {
		if name, list, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "flags" {
			flags := strings.Fields(list)
			return !slices.ContainsFunc(wanted, func(w string) bool { return !slices.Contains(flags, w) })
		}
	}
	return false
}

// TestKernelsComputeQuantized decodes with q8_0 weights, whose products the kernels
// take where the processor has VNNI: the text is ggml's, but for a doubtful word.
func TestKernelsComputeQuantized(t *testing.T) {
	needLibrary(t)
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || runtime.GOARCH != "amd64" || os.Getenv(EnvKernels) != "" || !hasFlags(string(info), "avx512f", "avx512bw", "avx512vl", "avx512_vnni") ||
		hasFlags(string(info), "amx_int8") {
		t.Skip("not an AVX-512 processor with VNNI and without AMX, or other kernels asked for")
	}
	t.Cleanup(func() {
		t.Setenv(EnvKernels, "")
		_, err := openKernels()
		require.NoError(t, err)
	})
	size, err := shape.Find("micro")
	require.NoError(t, err)
	var model bytes.Buffer
	require.NoError(t, shape.WriteModel(&model, size, shape.Options{Type: shape.Q8_0, Tokens: 40}))
	pcm := audio.FromSamples(shape.Speech(10, 1, 1))
	speech := []audio.Span{{End: pcm.Len()}}
	o := asr.DefaultOptions()
	o.Language = "en"
	var said [][]string
	for _, set := range []string{"off", ""} {
		t.Setenv(EnvKernels, set)
		_, err := openKernels()
		require.NoError(t, err)
		before, _ := computed()
		transcript, err := open(t, model.Bytes(), Options{}).Transcribe(context.Background(), pcm, speech, o)
		require.NoError(t, err)
		said = append(said, strings.Fields(strings.Join(texts(transcript), " ")))
		after, _ := computed()
		assert.Equal(t, set == "", after > before, set)
	}
	require.Greater(t, len(said[0]), 5)
	require.Len(t, said[1], len(said[0]))
	same := 0
	for i, w := range said[0] {
		if said[1][i] == w {
			same++
		}
	}
	assert.Greater(t, same, len(said[0])*4/5, "%v: %v", said[0], said[1])
}
