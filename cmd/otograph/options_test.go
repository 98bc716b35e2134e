package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// parseOptions parses a command line of options.
func parseOptions(t *testing.T, args ...string) (spec.Options, *kong.Kong, error) {
	t.Helper()
	c := struct{ optionFlags }{newOptionFlags()}
	parser, err := kong.New(&c, kong.Name("test"))
	require.NoError(t, err)
	if _, err := parser.Parse(args); err != nil {
		return spec.Options{}, parser, err
	}
	o, err := c.options()
	return o, parser, err
}

// TestOptionFlags checks that every option of the table is a flag, and that the
// flags set the options.
func TestOptionFlags(t *testing.T) {
	none, parser, err := parseOptions(t)
	require.NoError(t, err)
	assert.Equal(t, spec.Options{}, none)
	flags := map[string]*kong.Flag{}
	for _, f := range parser.Model.Flags {
		flags[f.Name] = f
	}
	for _, row := range spec.Table() {
		f := flags[strings.ReplaceAll(row.Name, "_", "-")]
		if row.Unlisted() {
			assert.Nil(t, f, row.Name)
			continue
		}
		require.NotNil(t, f, row.Name)
		assert.Equal(t, row.Group, f.Group.Key, row.Name)
		assert.NotContains(t, f.Help, "null", "people do not write null on a command line")
		delete(flags, f.Name)
	}
	assert.Len(t, flags, 1, "help")

	got, _, err := parseOptions(t, "--enable-diarize=false", "--optimize", "false", "--timestamp-level=segment", "-l", "de",
		"--asr-beam-size=3", "--asr-temperature", "0.5", "--hotwords=Otograph,Kubernetes", "--initial-prompt=a, b",
		"--audio-events-class=Chicken, rooster", "--audio-events-classes=Dog")
	require.NoError(t, err)
	assert.Equal(t, spec.Options{
		EnableDiarize: new(false), Optimize: new(false), TimestampLevel: new(spec.TimestampSegment), ASRLanguage: new("de"),
		ASRBeamSize: new(3), ASRTemperature: new(0.5), Hotwords: []string{"Otograph", "Kubernetes"}, InitialPrompt: new("a, b"),
		AudioEventsClasses: []string{"Chicken, rooster", "Dog"},
	}, got)
	got, _, err = parseOptions(t, "--no-enable-asr", "--optimize=auto")
	require.NoError(t, err)
	assert.Equal(t, spec.Options{EnableASR: new(false), EnableDiarize: new(false)}, got)
}

// TestOptionFlagErrors checks that errors name the flag.
func TestOptionFlagErrors(t *testing.T) {
	for arg, says := range map[string]string{
		"--asr-beam-size=21":        "--asr-beam-size: must be between 1 and 20, not 21",
		"--asr-beam-size=x":         "--asr-beam-size",
		"--optimize=maybe":          "--optimize",
		"--asr-language=klingon":    `--asr-language: unknown language "klingon"`,
		"--vad-threshold=NaN":       "NaN",
		"--enable-asr=perhaps":      "--enable-asr",
		"--timestamp-level=letter":  `--timestamp-level: must be "word" or "segment"`,
		"--audio-events-class=Dogg": `the nearest is "Dog"`,
	} {
		_, _, err := parseOptions(t, arg)
		assert.ErrorContains(t, err, says, arg)
	}
}

// TestFormatsWithoutContent checks that options which leave nothing to write are
// refused before the work.
func TestFormatsWithoutContent(t *testing.T) {
	for args, format := range map[string]string{"--timestamp-level=segment": "ctm", "--no-enable-asr": "ctm", "--no-enable-diarize": "rttm"} {
		o, _, err := parseOptions(t, args)
		require.NoError(t, err)
		assert.ErrorAs(t, checkContent(format, o), new(*usageError), args)
		assert.NoError(t, checkContent("srt", o), args)
	}
	assert.NoError(t, checkContent("ctm", spec.Options{}))
	assert.NoError(t, checkContent("rttm", spec.Options{}))
}
