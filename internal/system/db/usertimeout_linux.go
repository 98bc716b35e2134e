package db

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
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
