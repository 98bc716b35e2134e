package processor

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNameIn(t *testing.T) {
	for info, want := range map[string]string{
		"processor\t: 0\nmodel\t\t: 143\nmodel name\t: Some(R) Processor 8481C\nmodel name\t: other\n": "Some(R) Processor 8481C",
		"processor\t: 0\nCPU part\t: 0xd0c\n": "",
		"":                                    "",
	} {
		assert.Equal(t, want, nameIn(info))
	}
}
