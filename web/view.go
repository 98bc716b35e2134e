package web

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
)

// View is one result that is written as a self-contained file.
type View struct {
	// Name is the recording's file name; it is shown and names downloads.
	Name string
	// Result is anything whose JSON form is the specification's Task result.
	Result any
	// Peaks are the peaks of equal stretches of the recording, 255 the loudest,
	// for the waveform; without them a bar shows the stretches of speech.
	Peaks []byte
	// Audio is the recording to embed, of media type AudioType
	// ("audio/ogg"); nil leaves it out, and the page asks for the file.
	Audio     []byte
	AudioType string
	// Files are the result in the formats srt, vtt and rttm that it has data
	// for; the page offers them for download.
	Files map[string]string
}

// viewData is the data for view.js in the page.
type viewData struct {
	Name      string            `json:"name"`
	Result    any               `json:"result"`
	Peaks     []byte            `json:"peaks,omitempty"`     // in Base64
	AudioType string            `json:"audioType,omitempty"` // the audio itself is in a separate block
	Files     map[string]string `json:"files"`
}

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
	data := viewData{Name: v.Name, Result: v.Result, Peaks: v.Peaks, Files: v.Files}
	if data.Files == nil {
		data.Files = map[string]string{}
	}
	if v.Audio != nil {
		data.AudioType = v.AudioType
	}
	// The encoder escapes <, > and &, so no text can end the block.
	block, err := json.Marshal(data)
	if err != nil {
		return err
	}
	nonce := rand.Text() // for the style sheet that the waveform inserts into its shadow tree
	var out bytes.Buffer
	fmt.Fprintf(&out, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src %s; style-src %s 'nonce-%s'; media-src blob:; img-src blob:; form-action 'none'; base-uri 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<meta name="otograph-nonce" content="%s">
<title>%s · Otograph</title>
<style>`, sourceHash(script), sourceHash(style), nonce, nonce, html.EscapeString(v.Name))
	out.Write(style)
	out.WriteString("</style>\n</head>\n<body>\n<div id=\"app\"></div>\n<noscript>This file uses a script to show its transcript; please allow scripts.</noscript>\n<script type=\"application/json\" id=\"data\">")
	out.Write(block)
	out.WriteString("</script>\n")
	if v.Audio != nil {
		out.WriteString("<script type=\"text/plain\" id=\"audio\">" + base64.StdEncoding.EncodeToString(v.Audio) + "</script>\n")
	}
	out.WriteString("<script>")
	out.Write(script)
	out.WriteString("</script>\n</body>\n</html>\n")
	_, err = out.WriteTo(w)
	return err
}

// sourceHash returns a Content-Security-Policy's source for inline content.
func sourceHash(content []byte) string {
	sum := sha256.Sum256(content)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
