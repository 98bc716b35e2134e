package cage

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// refusedWithoutHarm are calls that ffmpeg and its libraries make but don't
// need.
var refusedWithoutHarm = map[uint64]string{
	unix.SYS_ACCESS:        "the loader looks for /etc/ld.so.preload",
	unix.SYS_READLINK:      "libraries look for their own place",
	unix.SYS_STATFS:        "libselinux looks for its file system",
	unix.SYS_GET_MEMPOLICY: "libnuma asks for memory policies",
	unix.SYS_CLONE3:        "glibc falls back to clone",
	unix.SYS_PRCTL:         "libraries ask for capabilities; names of threads are allowed",
	unix.SYS_SOCKET:        "libraries look for a daemon",
	unix.SYS_MKDIR:         "libraries look for a cache",
	unix.SYS_TGKILL:        "abort",
	unix.SYS_MLOCK:         "a library wants its memory never swapped",
	unix.SYS_SET_MEMPOLICY: "libnuma sets memory policies",
	unix.SYS_MBIND:         "OpenBLAS places its buffers",
}

// TestFFmpegNeedsNoMore traces a real ffmpeg outside the cage over recordings
// of every format. A call that is neither listed nor known to be unnecessary
// fails the test and is named.
func TestFFmpegNeedsNoMore(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip(err)
	}
	files, err := filepath.Glob("../../../audio/testdata/formats/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	listed := map[uint64]bool{}
	for _, r := range rules(false) {
		listed[uint64(r.call)] = true
	}
	seen := map[uint64]string{}
	for i, file := range files {
		if testing.Short() && i%3 != 0 {
			continue // in the short form, every third
		}
		traceCalls(t, seen, file, ffmpeg, "-hide_banner", "-nostdin", "-threads", "1", "-i", file, "-vn", "-c:a", "pcm_f32le", "-f", "matroska", "pipe:1")
	}
	require.Greater(t, len(seen), 15)
	for call, file := range seen {
		if _, harmless := refusedWithoutHarm[call]; !listed[call] && !harmless {
			assert.Fail(t, "a call is missing", "ffmpeg makes call %d on %s", call, file)
		}
	}
	t.Logf("%d files, %d different calls", len(files), len(seen))
}

// traceCalls runs a command and adds its system calls to seen.
func traceCalls(t *testing.T, seen map[uint64]string, file string, command ...string) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = null, null
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); errors.Is(err, unix.EPERM) {
		t.Skip("ptrace is not permitted here")
	} else {
		require.NoError(t, err)
	}
	pid := cmd.Process.Pid
	var status syscall.WaitStatus
	_, err = syscall.Wait4(pid, &status, unix.WALL, nil)
	require.NoError(t, err)
	require.NoError(t, syscall.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_TRACEFORK|unix.PTRACE_O_TRACEVFORK|unix.PTRACE_O_EXITKILL))
	for next := pid; ; {
		signal := 0
		if status.Stopped() && status.StopSignal() != unix.SIGTRAP|0x80 && status.StopSignal() != unix.SIGTRAP && status.StopSignal() != unix.SIGSTOP {
			signal = int(status.StopSignal())
		}
		_ = syscall.PtraceSyscall(next, signal)
		next, err = syscall.Wait4(-1, &status, unix.WALL, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || next == pid && (status.Exited() || status.Signaled()) {
			break
		}
		if status.Stopped() && status.StopSignal() == unix.SIGTRAP|0x80 {
			var regs syscall.PtraceRegs
			if syscall.PtraceGetRegs(next, &regs) == nil && seen[regs.Orig_rax] == "" {
				seen[regs.Orig_rax] = file
			}
		}
	}
	_ = cmd.Process.Release()
}
