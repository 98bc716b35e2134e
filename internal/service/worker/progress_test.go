package worker

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/spec"
)

// TestLongRunsReportRarely counts the reports of a run that reports
// continuously, until its heartbeats, one each 5 s, carry its progress.
func TestLongRunsReportRarely(t *testing.T) {
	n := 0
	lasted := time.Duration(0)
	for pause := firstPause; pause < 5*time.Second; pause = reportPause(lasted) {
		n++
		lasted += pause
	}
	assert.LessOrEqual(t, n, 85)
	assert.InDelta(t, 100, lasted.Seconds(), 5)
	t.Logf("%d reports in the first %.0f s, none after", n, lasted.Seconds())
}

// TestSentencesAreWrittenWithProgress: each sentence is written once, in order,
// with the progress that follows it, and again if that write failed; another
// claim starts anew.
func TestSentencesAreWrittenWithProgress(t *testing.T) {
	w := reports{begun: make(chan struct{}, 1)}
	texts := func(p *queue.Progress) (all []string) {
		for _, s := range p.Segments {
			all = append(all, s.Text)
		}
		return all
	}
	say := func(text string) { w.addSegments([]spec.Segment{{Text: text}}) }
	say("One.")
	assert.Nil(t, w.take(), "no progress to write")
	assert.Len(t, w.begun, 1, "the first one does not wait for the pause between writes")
	<-w.begun
	w.set(&queue.Progress{Fraction: 0.1})
	p := w.take()
	assert.Equal(t, []any{0, []string{"One."}}, []any{p.First, texts(p)})
	say("Two.")
	w.set(&queue.Progress{Fraction: 0.2})
	w.written(p, nil)
	p = w.take()
	say("Three.")
	w.set(&queue.Progress{Fraction: 0.3})
	beside := w.take()
	assert.Empty(t, beside.Segments, "one write at a time has sentences")
	w.written(beside, nil)
	w.written(p, errors.New("the database is away"))
	w.set(&queue.Progress{Fraction: 0.4})
	p = w.take()
	assert.Equal(t, []any{1, []string{"Two."}}, []any{p.First, texts(p)}, "the same sentences: the failed write may have been committed")
	w.written(p, nil)
	w.set(&queue.Progress{Fraction: 0.5})
	p = w.take()
	assert.Equal(t, []any{2, []string{"Three."}}, []any{p.First, texts(p)})
	assert.Empty(t, w.begun)
	w.clear()
	for _, text := range []string{"A.", "B.", "C."} { // the number in the write before
		say(text)
	}
	w.set(&queue.Progress{})
	other := w.take()
	w.written(other, nil)
	w.written(p, errors.New("late"))
	say("Of another task.")
	w.set(&queue.Progress{})
	p = w.take()
	assert.Equal(t, []any{3, []string{"Of another task."}}, []any{p.First, texts(p)})
}
