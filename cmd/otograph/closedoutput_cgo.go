//go:build unix && cgo

package main

/*
#include <fcntl.h>

static int closed;

// Runs before Go's runtime, which opens /dev/null in place of a closed output.
__attribute__((constructor)) static void og_look(void) { closed = fcntl(1, F_GETFD) < 0; }

static int og_output_closed(void) { return closed; }
*/
import "C"

import (
	"os"

	"golang.org/x/sys/unix"
)

// refuseClosedOutput makes printing fail if the program was started with
// standard output closed.
func refuseClosedOutput() error {
	if C.og_output_closed() == 0 {
		return nil
	}
	unwritable, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	os.Stdout = os.NewFile(uintptr(unwritable), "standard output, which is closed")
	return nil
}
