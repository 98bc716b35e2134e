// Command fetch installs the native libraries (libwhisper, ggml, ONNX Runtime)
// where programs that use Otograph find them:
//
//	go run github.com/otograph/otograph/third_party/fetch [DIR]
//
// The default of DIR is third_party/native inside the checkout that the command
// was compiled from, and otherwise otograph/native in the user's data folder.
// If the libraries are already there, the command does nothing. Environment
// variables and sources: see internal/system/native/recipe/fetch.sh.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/otograph/otograph/internal/system/native"
)

func main() {
	if len(os.Args) > 2 || len(os.Args) == 2 && len(os.Args[1]) > 0 && os.Args[1][0] == '-' {
		fmt.Fprintln(os.Stderr, "usage: fetch [DIR]")
		os.Exit(2)
	}
	dest := ""
	if len(os.Args) == 2 {
		dest = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := native.Install(ctx, dest, "unchanged", os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}
