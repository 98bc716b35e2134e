package otograph

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRounding(t *testing.T) {
	assert.Equal(t, 1.23, clock(5).centi(1.2349999))
	assert.Equal(t, 60.0, clock(60.004).centi(60.004))
	assert.Equal(t, 60.0, clock(60.008).centi(60.008), "60.01 lies beyond the end")
	assert.Equal(t, 60.01, clock(60.01).centi(60.01))
	assert.Equal(t, 0.29, clock(0.29).centi(0.29))
	assert.Equal(t, 0.9999, round4(0.99987))
	assert.Equal(t, 1.0, round4(1.2))
	assert.Equal(t, 0.0, round4(-0.1))
	assert.Equal(t, 0.9123, *rounded(new(0.91234)))
	assert.Nil(t, rounded(nil))
}
