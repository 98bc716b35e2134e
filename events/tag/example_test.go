package tag_test

import (
	"context"
	"fmt"
	"log"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/events/tag"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/published"
)

// This example only tags sounds: it detects the sounds in a recording other
// than speech.
func Example() {
	file, err := published.Models().Need(models.RoleTagger)
	if err != nil {
		log.Fatal(err)
	}
	tagger, err := tag.Open(file, tag.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = tagger.Close() }()
	pcm, err := audio.Open(context.Background(), audio.File("../../testdata/conversation.flac"), audio.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = pcm.Close() }()
	found, err := events.Detect(context.Background(), tagger, pcm, events.Options{Threshold: 0.5, Classes: []string{"Music", "Telephone"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range found {
		fmt.Printf("%s at %.0f s\n", e.Class.DisplayName, e.Start)
	}
	// Output:
	// Music at 0 s
	// Telephone at 30 s
}
