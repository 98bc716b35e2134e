package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/otograph/otograph/internal/system/backoff"
)

// userTimeout makes the kernel close a TCP connection whose sent data stays
// unacknowledged for deadPeer.
func userTimeout(network, _ string, raw syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadPeer.Milliseconds()))
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("TCP_USER_TIMEOUT: %w", err)
	}
	return nil
}

// watch signals sub each time a process closes a file opened for writing, until
// ctx is done.
func watch(ctx context.Context, path string, sub chan<- struct{}) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("inotify: %w", err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_CLOSE_WRITE); err != nil {
		events.Close()
		return fmt.Errorf("inotify: %s: %w", path, err)
	}
	context.AfterFunc(ctx, func() { events.Close() })
	go func() {
		var event [unix.SizeofInotifyEvent]byte
		for {
			if _, err := events.Read(event[:]); err != nil {
				return
			}
			backoff.Signal(sub)
		}
	}()
	return nil
}
