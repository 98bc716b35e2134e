package assemble

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/internal/found"
)

func TestRounding(t *testing.T) {
	assert.Equal(t, 1.23, found.Clock(5).Centi(1.2349999))
	assert.Equal(t, 60.0, found.Clock(60.004).Centi(60.004))
	assert.Equal(t, 60.0, found.Clock(60.008).Centi(60.008), "60.01 lies beyond the end")
	assert.Equal(t, 60.01, found.Clock(60.01).Centi(60.01))
	assert.Equal(t, 0.29, found.Clock(0.29).Centi(0.29))
	assert.Equal(t, 0.9999, found.Round4(0.99987))
	assert.Equal(t, 1.0, found.Round4(1.2))
	assert.Equal(t, 0.0, found.Round4(-0.1))
	assert.Equal(t, 0.9123, *rounded(new(0.91234)))
	assert.Nil(t, rounded(nil))
}
