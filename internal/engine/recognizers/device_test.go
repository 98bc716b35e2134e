package recognizers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseDevice(t *testing.T) {
	for name, want := range map[string]string{
		"": "auto", "auto": "auto", "cpu": "cpu", "vulkan": "vulkan:0", "vulkan:7": "vulkan:7", "cuda:1": "cuda:1",
		"gpu": "", "vulkan:": "", "vulkan:-1": "", "vulkan:x": "", "vulkan:1000": "", "cpu:0": "", "Vulkan": "",
	} {
		got, err := ParseDevice(name)
		assert.Equal(t, want, got, name)
		if want == "" {
			assert.ErrorContains(t, err, fmt.Sprintf("found %q", name))
		}
	}
}
