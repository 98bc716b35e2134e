package main

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/system/fetch"
)

// voxconverse returns both parts of VoxConverse, with the turns of version 0.3.
// The publishers state no hashes; two projects that use the data set state
// these.
func voxconverse() (list []Set) {
	const turns = "24bf60be297701cd7e4ef18550c6d390c1b87365"
	for _, part := range []struct {
		name, sum string
		hours     float64 // published as minutes: 1,218 and 2,612
	}{
		{"dev", "e83a68b5df3bc945a3cf4544102038792ae79972753c585769e58ea677c523a8", 20.3},
		{"test", "472ebf1eaeb1dcb5c311b07a8b5c31bcedcccbf98f386d90a88cde2452da8c68", 43.5},
	} {
		zip := "voxconverse_" + part.name + "_wav.zip"
		list = append(list, Set{
			Name: "voxconverse-" + part.name, About: "who speaks when: debates, news, talk shows from YouTube", License: "CC-BY-4.0",
			Page: "https://www.robots.ox.ac.uk/~vgg/data/voxconverse/", Hours: part.hours,
			files: []source{
				{
					File:  fetch.File{Name: zip, URL: "https://www.robots.ox.ac.uk/~vgg/data/voxconverse/data/" + zip, SHA256: part.sum},
					place: matching(`([^/]+\.wav)$`, audioDir+"/$1"),
				},
				{
					File: fetch.File{
						Name: "voxconverse-turns.tar.gz", URL: "https://github.com/joonson/voxconverse/archive/" + turns + ".tar.gz",
						SHA256: "e8c25c91b014657d7e4ad86f9bef4a7eb399929d8d4fab910d8e6c6ab63d1197",
					},
					place: matching(`/`+part.name+`/([^/]+\.rttm)$`, referencesDir+"/$1"),
				},
			},
			lines: turnLines,
		})
	}
	return list
}

// turnLines returns the recordings that have turns.
func turnLines(folder string) (lines []line, err error) {
	files, err := glob(folder, referencesDir+"/*.rttm")
	for _, file := range files {
		name := filepath.Base(file)
		lines = append(lines, line{
			File: audioDir + "/" + strings.TrimSuffix(name, path.Ext(name)) + ".wav", RTTM: referencesDir + "/" + name,
		})
	}
	return lines, err
}
