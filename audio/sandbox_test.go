package audio

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSandbox(t *testing.T) {
	needFFmpeg(t)
	s := Sandbox()
	t.Logf("%+v\n%s", s, s.Strength())
	assert.True(t, s.Works)
	assert.NotEmpty(t, s.Version)
}
