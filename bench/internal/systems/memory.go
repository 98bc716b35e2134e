package systems

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/system/host"
)

// memoryPause is the interval at which a program's memory is read. The system
// keeps the peak of each process, so only a rise in its last moments is missed.
const memoryPause = 20 * time.Millisecond

// watchMemory watches the memory of a process and its children. The returned
// function stops watching and returns the sum of their peaks in bytes, 0 if the
// system does not report it. The peak that wait reports is unsuitable: after an
// exec it includes the memory of the process that started the program.
func watchMemory(pid int) func() int64 {
	stop, done := make(chan struct{}), make(chan struct{})
	peaks := map[int]int64{}
	go func() {
		defer close(done)
		for tick := time.NewTicker(memoryPause); ; {
			addPeaks(peaks, pid)
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	return func() (sum int64) {
		close(stop)
		<-done
		for _, p := range peaks {
			sum += p
		}
		return sum
	}
}

// addPeaks stores the peaks of a process and of its children.
func addPeaks(peaks map[int]int64, pid int) {
	if peak := host.PeakMemory(strconv.Itoa(pid)); peak > 0 {
		peaks[pid] = max(peaks[pid], peak)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return
	}
	for _, child := range strings.Fields(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			addPeaks(peaks, n)
		}
	}
}
