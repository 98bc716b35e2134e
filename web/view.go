package web

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"
)

// View is one result that is written as a self-contained file. Its JSON form is
// the data for view.js.
type View struct {
	// Name is the recording's file name; it is shown and names downloads.
	Name string `json:"name"`
	// Result is anything whose JSON form is the specification's Task result.
	Result any `json:"result"`
	// Peaks are the peaks of equal stretches of the recording, 255 the loudest,
	// for the waveform; without them a bar shows the stretches of speech.
	Peaks []byte `json:"peaks,omitempty"`
	// Audio is the recording to embed, of media type AudioType
	// ("audio/ogg"); nil leaves it out, and the page asks for the file.
	Audio     []byte `json:"-"` // in a separate block
	AudioType string `json:"audioType,omitempty"`
	// Files are the result in the formats srt, vtt and rttm that it has data
	// for; the page offers them for download.
	Files map[string]string `json:"files"`
}

//go:embed view.html
var viewPage string

// WriteView writes v as one HTML file with style, script and data, whose policy
// lets it fetch nothing. Without a page it returns ErrNotBuilt.
func WriteView(w io.Writer, v View) error {
	script, err := built("view.js")
	if err != nil {
		return err
	}
	style, err := built("view.css")
	if err != nil {
		return err
	}
	if bytes.Contains(bytes.ToLower(script), []byte("</script")) || bytes.Contains(bytes.ToLower(style), []byte("</style")) {
		return fmt.Errorf("web: the built view would end its own element")
	}
	audio := ""
	if v.Files == nil {
		v.Files = map[string]string{}
	}
	if v.Audio == nil {
		v.AudioType = ""
	} else {
		audio = "<script type=\"text/plain\" id=\"audio\">" + base64.StdEncoding.EncodeToString(v.Audio) + "</script>\n"
	}
	// The encoder escapes <, > and &, so no text can end the block.
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = strings.NewReplacer(
		"{{script-hash}}", sourceHash(script), "{{script}}", string(script), "{{style-hash}}", sourceHash(style), "{{style}}", string(style),
		"{{nonce}}", rand.Text(), // for the style sheet that the waveform inserts into its shadow tree
		"{{name}}", html.EscapeString(v.Name), "{{data}}", string(data), "{{audio}}", audio,
	).WriteString(w, viewPage)
	return err
}

// sourceHash returns a Content-Security-Policy's source for inline content.
func sourceHash(content []byte) string {
	sum := sha256.Sum256(content)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
