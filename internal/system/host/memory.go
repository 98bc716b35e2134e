package host

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// within returns the least of machine and the limits, in bytes, of the
// process's control groups (version 1 or 2) and those above. root is "/".
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
