package host

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

func TestControlGroupsLimitMemory(t *testing.T) {
	const machine = 1000
	for name, c := range map[string]struct {
		groups string
		files  map[string]string
		want   uint64
	}{
		"no groups":                     {"", nil, machine},
		"version 2":                     {"0::/a/b\n", map[string]string{"a/b/memory.max": "400\n"}, 400},
		"no limit":                      {"0::/a/b\n", map[string]string{"a/b/memory.max": "max\n"}, machine},
		"the group above is smaller":    {"0::/a/b\n", map[string]string{"a/b/memory.max": "400\n", "a/memory.max": "300\n"}, 300},
		"the root of a container":       {"0::/\n", map[string]string{"memory.max": "200\n"}, 200},
		"more than the machine has":     {"0::/a\n", map[string]string{"a/memory.max": "4000\n"}, machine},
		"version 1":                     {"5:cpu:/c\n4:memory:/a\n0::/\n", map[string]string{"memory/a/memory.limit_in_bytes": "500\n", "memory/c/memory.limit_in_bytes": "1\n"}, 500},
		"version 1, no limit":           {"4:memory:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, machine},
		"version 1, inside a container": {"4:cpu,memory:/docker/x\n", map[string]string{"memory/memory.limit_in_bytes": "600\n"}, 600},
	} {
		root := fstest.MapFS{"proc/self/cgroup": {Data: []byte(c.groups)}}
		for file, text := range c.files {
			root["sys/fs/cgroup/"+file] = &fstest.MapFile{Data: []byte(text)}
		}
		assert.Equal(t, c.want, within(root, machine), name)
	}
}

func TestLimitOfThisMachine(t *testing.T) {
	if limit := MemoryLimit(); limit != 0 {
		assert.Greater(t, limit, uint64(1<<26))
	}
}
