package otograph

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRounding(t *testing.T) {
	assert.Equal(t, 1.23, centi(1.2349999))
	assert.Equal(t, 0.9999, round4(0.99987))
	assert.Equal(t, 1.0, round4(1.2))
	assert.Equal(t, 0.0, round4(-0.1))
}
