package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestLongRunsReportRarely counts the reports of a run that tells something all
// the time, until its heartbeats, one each 5 s, carry what it tells.
func TestLongRunsReportRarely(t *testing.T) {
	reports := 0
	lasted := time.Duration(0)
	for pause := firstPause; pause < 5*time.Second; pause = reportPause(lasted) {
		reports++
		lasted += pause
	}
	assert.LessOrEqual(t, reports, 70)
	assert.InDelta(t, 100, lasted.Seconds(), 5)
	t.Logf("%d reports in the first %.0f s, none after", reports, lasted.Seconds())
}
