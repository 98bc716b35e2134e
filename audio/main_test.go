package audio

import (
	"os"
	"strconv"
	"testing"

	"github.com/otograph/otograph/internal/test/outside"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("OTOGRAPH_TEST_DECODE"); path != "" { // TestDyingProcess starts this program again to kill it
		decodeForEver(path)
		return
	}
	outside.Main(m)
}

// children lists the running child processes of this process.
func children(t testing.TB) []int {
	t.Helper()
	return childrenOf(t, os.Getpid())
}

func childrenOf(t testing.TB, parent int) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if status, ok := readStat(pid); ok && status.parent == parent && status.state != "Z" {
			pids = append(pids, pid)
		}
	}
	return pids
}
