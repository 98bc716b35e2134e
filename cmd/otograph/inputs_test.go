package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOutputNames: dots in a title are kept, and files of folders keep their
// subfolders.
func TestOutputNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"years/2024/rec1.opus", "years/2025/rec1.opus", "years/cover.jpg", "more/1.1 Lesson name", "more/2.1 Lesson.m4a"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o777))
		require.NoError(t, os.WriteFile(name, []byte(name), 0o666))
	}
	require.NoError(t, os.Mkdir("out", 0o777))
	for name, c := range map[string]struct{ args, want []string }{
		"a title":         {[]string{"more/1.1 Lesson name"}, []string{"out/1.1 Lesson name.srt"}},
		"an ending":       {[]string{"more/2.1 Lesson.m4a"}, []string{"out/2.1 Lesson.srt"}},
		"the output's":    {[]string{"b.SRT", "c.srt"}, []string{"out/b.SRT.srt", "out/c.srt"}},
		"standard input":  {[]string{"-"}, []string{"out/stdin.srt"}},
		"a folder":        {[]string{"years"}, []string{"out/2024/rec1.srt", "out/2025/rec1.srt"}},
		"folders":         {[]string{"years/2024", "years/2025/"}, []string{"out/2024/rec1.srt", "out/2025/rec1.srt"}},
		"one recording":   {[]string{"years/2024"}, []string{"out/rec1.srt"}},
		"folder and file": {[]string{"years", "more/2.1 Lesson.m4a"}, []string{"out/2024/rec1.srt", "out/2025/rec1.srt", "out/2.1 Lesson.srt"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs{files: c.args} // no such file exists
			if name != "the output's" {
				var err error
				in, err = expandInputs(c.args)
				require.NoError(t, err)
			}
			cmd := &transcribeCmd{Format: "srt", Output: "out", in: in}
			require.NoError(t, cmd.checkOutput(in.files))
			var got []string
			for _, f := range in.files {
				got = append(got, cmd.outputPath(f))
			}
			assert.Equal(t, c.want, got)
			for _, path := range got {
				assert.DirExists(t, filepath.Dir(path))
			}
		})
	}
	in, err := expandInputs([]string{"years/2024"})
	require.NoError(t, err)
	cmd := &transcribeCmd{Format: "srt", Output: "new", in: in}
	require.NoError(t, cmd.checkOutput(in.files))
	assert.Equal(t, "new/rec1.srt", cmd.outputPath(in.files[0]), "a folder's only recording")
	require.NoError(t, os.Symlink("years", "linked"))
	in, err = expandInputs([]string{"linked"})
	require.NoError(t, err)
	assert.Equal(t, []string{"linked/2024/rec1.opus", "linked/2025/rec1.opus"}, in.files, "a link that is named")
	one := &transcribeCmd{Format: "srt", Output: "made/"}
	require.NoError(t, one.checkOutput([]string{"a.mp3"}))
	assert.Equal(t, "made/a.srt", one.outputPath("a.mp3"))
	_, err = formatOf(auto, "a.ass", "text srt")
	require.ErrorContains(t, err, "-o a.ass: ass is not written")
	for path, want := range map[string]string{"a.labels.txt": "labels", "a.HTM": "html", "a.markdown": "md", "a.txt": "text"} {
		format, err := formatOf(auto, path, "text md labels html")
		require.NoError(t, err)
		assert.Equal(t, want, format, path)
	}
	cmd.Output = "years/cover.jpg"
	require.ErrorContains(t, cmd.checkOutput(in.files), "require a folder, and this is a file")
	in, err = expandInputs([]string{"years"})
	require.NoError(t, err)
	assert.Equal(t, []string{"years: 1 file passed over, whose names do not end like those of recordings"}, in.notes)
	require.NoError(t, os.Symlink("..", "years/round.wav"))
	require.NoError(t, os.Symlink("nowhere.wav", "years/broken.wav"))
	in, err = expandInputs([]string{"years"})
	require.NoError(t, err)
	assert.Equal(t, []string{"years: 1 file passed over, whose names do not end like those of recordings; 2 links not followed, to a folder or to nothing"}, in.notes)
	_, err = expandInputs([]string{"missing.mp3"})
	assert.EqualError(t, err, "missing.mp3: no such file or directory")
	_, err = expandInputs([]string{"-", "-"})
	assert.ErrorContains(t, err, "only once")
	require.NoError(t, os.RemoveAll("more/2.1 Lesson.m4a"))
	_, err = expandInputs([]string{"more"})
	assert.EqualError(t, err, "more: no audio or video file in this folder (1 file passed over)")
}

// TestResumeSkipsFinishedRecordings skips recordings whose output is not older,
// and only those.
func TestResumeSkipsFinishedRecordings(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	put := func(name string, age time.Duration) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte("text"), 0o666))
		require.NoError(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
		return path
	}
	done, changed, missing := put("a.wav", time.Hour), put("b.wav", time.Minute), put("c.wav", time.Hour)
	put("a.txt", time.Minute)
	put("b.txt", time.Hour)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c.txt"), nil, 0o666))
	c := &transcribeCmd{Format: "text", Output: dir, Quiet: true, in: inputs{files: []string{done, changed, missing}}}
	left, err := c.unfinished(c.in.files)
	require.NoError(t, err)
	assert.Len(t, left, 3)
	c.Resume = true
	left, err = c.unfinished(c.in.files)
	require.NoError(t, err)
	assert.Equal(t, []string{changed, missing}, left)
	c.Output = ""
	_, err = c.unfinished(c.in.files)
	require.ErrorContains(t, err, "requires -o")
}

func TestAddressesAreRefused(t *testing.T) {
	_, err := expandInputs([]string{"https://example.org/talk.mp3"})
	require.ErrorAs(t, err, new(*usageError))
	assert.ErrorContains(t, err, "curl -LO https://example.org/talk.mp3")
}
