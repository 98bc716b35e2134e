// Package mediafiles recognizes recordings by their file names. Package audio
// determines a file's format from its content.
package mediafiles

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Endings are the endings of file names by package audio's containers.
var Endings = map[string][]string{
	"aac":       {".aac", ".adts", ".latm", ".loas"},
	"ac3":       {".ac3"},
	"aiff":      {".aif", ".aifc", ".aiff"},
	"amr":       {".amr", ".awb"},
	"ape":       {".ape"},
	"ircam":     {".sf"},
	"nut":       {".nut"},
	"sphere":    {".nist", ".sph"},
	"truehd":    {".mlp", ".thd"},
	"asf":       {".asf", ".wma", ".wmv"},
	"au":        {".au", ".snd"},
	"avi":       {".avi"},
	"caf":       {".caf"},
	"dsdiff":    {".dff"},
	"dsf":       {".dsf"},
	"dts":       {".dts"},
	"eac3":      {".eac3", ".ec3"},
	"flac":      {".flac"},
	"flv":       {".flv"},
	"matroska":  {".mka", ".mkv", ".weba", ".webm"},
	"mp3":       {".mp2", ".mp3", ".mpa", ".mpga"},
	"mp4":       {".3g2", ".3gp", ".m4a", ".m4b", ".m4s", ".m4v", ".mov", ".mp4", ".qt"},
	"mpeg-ps":   {".mpeg", ".mpg", ".vob"},
	"mpegts":    {".m2ts", ".mts", ".ts"},
	"musepack":  {".mpc"},
	"ogg":       {".oga", ".ogg", ".ogv", ".ogx", ".opus", ".spx"},
	"realmedia": {".ra", ".rm"},
	"tak":       {".tak"},
	"tta":       {".tta"},
	"voc":       {".voc"},
	"w64":       {".w64"},
	"wav":       {".wav", ".wave"},
	"wavpack":   {".wv"},
	"xwma":      {".xwma"},
	"audible":   {".aa"},
	"avr":       {".avr"},
	"codec2":    {".c2"},
	"dhav":      {".dav"},
	"dss":       {".dss"},
	"dv":        {".dv"},
	"ilbc":      {".lbc"},
	"mmf":       {".mmf"},
	"mxf":       {".mxf"},
	"nsv":       {".nsv"},
	"nuv":       {".nuv"},
	"oma":       {".aa3", ".oma", ".omg"},
	"paf":       {".paf"},
	"pvf":       {".pvf"},
	"qcp":       {".qcp"},
	"sox":       {".sox"},
	"spdif":     {".spdif"},
	"svx":       {".8svx", ".iff"},
	"vqf":       {".vqf", ".vql"},
	"wtv":       {".wtv"},
	"wve":       {".wve"},
}

// Ending returns the ending of a recording's name as written there, or "": in a
// title, text after the last point belongs to the title.
func Ending(name string) string {
	ending := filepath.Ext(name)
	for _, list := range Endings {
		if slices.Contains(list, strings.ToLower(ending)) {
			return ending
		}
	}
	return ""
}

// Stem returns a name without the ending of a recording.
func Stem(name string) string { return strings.TrimSuffix(name, Ending(name)) }

// TextEndings lists the endings of a recording's text in a folder, in the order
// of preference; .lab is HTK's.
var TextEndings = []string{".txt", ".TXT", ".lab"}

// Walk returns the recordings in a folder and its subfolders, ordered by name,
// and the other files, including links that lead to no file. It follows links to
// files, but not links to folders. Hidden files and folders are in neither list.
func Walk(dir string) (files, others []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := path != dir && strings.HasPrefix(d.Name(), ".")
		switch {
		case hidden && d.IsDir():
			return fs.SkipDir
		case hidden || d.IsDir():
			return nil
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && Ending(path) != "" {
			files = append(files, path)
		} else {
			others = append(others, path)
		}
		return nil
	})
	return files, others, err
}
