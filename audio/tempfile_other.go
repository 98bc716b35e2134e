//go:build unix && !linux

package audio

import (
	"errors"
	"os"
)

func unnamedFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }
