// Command liveserver measures a server with OpenAI's realtime interface as
// `otograph bench live` measures own sessions: latencies, accuracy, the number of
// sessions that keep up.
//
//	go run -C tools ./liveserver -models DIR MANIFEST 'ws://HOST:PORT/v1/realtime?intent=transcription&model=base'
//
// The server gets 24 kHz in packets of 20 ms and decides itself where a turn
// ends (server_vad). Its key is read from LIVESERVER_API_KEY. The models tell
// when words end, unless the manifest does; the word errors of whole recordings
// are the models', and the processor time is this program's.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/models/published"
	"github.com/otograph/otograph/tools/internal/checkout"
)

func main() {
	log.SetFlags(0)
	folder := flag.String("models", "", "model folder; default: the demo models")
	numbers := flag.String("sessions", "", "numbers of concurrent sessions, such as 1,4; default: the search of bench live")
	seconds := flag.Float64("seconds", 0, "sound that each session gets; 0: all")
	known := flag.Bool("known-language", false, "state the manifest's language to the server")
	flag.Parse()
	var sessions []int
	err := checkout.Enter()
	if flag.NArg() != 2 {
		err = errors.New("usage: liveserver [flags] MANIFEST ws://…")
	}
	for number := range strings.SplitSeq(*numbers, ",") {
		if n, failed := strconv.Atoi(number); failed == nil {
			sessions = append(sessions, n)
		} else if *numbers != "" {
			err = errors.Join(err, failed)
		}
	}
	if err == nil {
		err = run(flag.Arg(0), flag.Arg(1), *folder, sessions, *seconds, *known)
	}
	if err != nil {
		log.Fatal("liveserver: ", err)
	}
}

func run(manifest, address, folder string, sessions []int, seconds float64, known bool) error {
	items, err := bench.Load(manifest)
	if err != nil {
		return err
	}
	set := demo.Models()
	if folder != "" {
		if set, err = (library.Load{Dir: folder, Fallback: published.Models()}).Open(); err != nil {
			return err
		}
	}
	system := bench.System{
		Name: address, Set: set, KnownLanguage: known,
		Options: otograph.Options{EnableDiarize: new(false), EnableAudioEvents: new(false)},
		Stream: func(ctx context.Context, language *string) (bench.LiveStream, error) {
			return openRealtime(ctx, address, os.Getenv("LIVESERVER_API_KEY"), language)
		},
	}
	report, err := bench.Live(context.Background(), bench.Config{Items: items, Systems: []bench.System{system}}, sessions, seconds)
	if err != nil {
		return err
	}
	return report.WriteTable(os.Stdout)
}
