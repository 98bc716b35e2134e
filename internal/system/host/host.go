// Package host asks the operating system: memory and processor, process groups,
// locks on files, the user's data folder.
package host

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// within returns the least of machine and the limits, in bytes, of the
// process's control groups (version 1 or 2) and their parents. root is "/".
func within(root fs.FS, machine uint64) uint64 {
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) { // hierarchy:controllers:/path
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		dir, file := "sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			dir, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
			if !strings.Contains(","+fields[1]+",", ",memory,") {
				continue
			}
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			text, _ := fs.ReadFile(root, path.Join(dir, group, file))
			if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
				machine = min(machine, limit)
			} // else "max", or a group outside of the container
			if group == "/" {
				break
			}
		}
	}
	return machine
}

// ProcessorName returns the processor's name, "" if it is not reported.
var ProcessorName = sync.OnceValue(func() (name string) {
	Fields("/proc/cpuinfo", func(key, value string) {
		if key == "model name" && name == "" {
			name = value
		}
	})
	return name
})

// PeakMemory returns the peak resident bytes of a process (a number or "self").
func PeakMemory(process string) (peak int64) {
	Fields("/proc/"+process+"/status", func(key, value string) {
		if key == "VmHWM" {
			peak = Kilobytes(value) << 10
		}
	})
	return peak
}

// Fields calls f for each "key : value" line of a file under /proc.
func Fields(path string, f func(key, value string)) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok {
			f(strings.TrimSpace(key), strings.TrimSpace(value))
		}
	}
}

// Kilobytes returns the number of a value such as "16318 kB".
func Kilobytes(value string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	return n
}

// DataDir returns otograph's folder of a name in the user's data folder:
// $XDG_DATA_HOME/otograph/name, or ~/.local/share/otograph/name if the variable
// is not set or, as the XDG Base Directory Specification requires, not
// absolute. It fails without a home folder, or with a relative one.
func DataDir(name string) (string, error) {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(home) {
			return "", fmt.Errorf("the home folder %q is not absolute", home)
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "otograph", name), nil
}

// ErrLocked is returned by TryLock if another process holds the lock.
var ErrLocked = errors.New("locked by another process")
