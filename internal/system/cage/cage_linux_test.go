//go:build linux && (amd64 || arm64)

package cage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// probe returns the compiled testdata/probe.c, in a folder with a file named
// secret.
func probe(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) //nolint:gosec // another user runs it
	bin := filepath.Join(dir, "probe")
	text, err := exec.CommandContext(t.Context(), cc, "-O1", "-o", bin, "testdata/probe.c").CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600))
	return bin
}

// users are the users that run the probe: this user and, for root, another one.
func users() map[string]*syscall.Credential {
	out := map[string]*syscall.Credential{"this user": nil}
	if os.Geteuid() == 0 {
		out["nobody"] = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	return out
}

// runCaged runs the spec as a user.
func runCaged(t *testing.T, s Spec, as *syscall.Credential) (State, string, error) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if s.Memory == 0 {
		s.Memory, s.CPU = 4<<30, 20
	}
	p, err := Command(s)
	require.NoError(t, err)
	if as != nil {
		p.SysProcAttr.Credential, p.SysProcAttr.Cloneflags = as, 0
	}
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	p.Stdout = in
	state, err := p.Start()
	in.Close()
	if err != nil {
		return state, "", err
	}
	text, err := io.ReadAll(out)
	return state, string(text), errors.Join(err, p.Wait())
}

// TestAllowList tries every existing system call in the cage. Calls that are
// not on the list are refused with any arguments, and listed calls are refused
// with dangerous arguments.
func TestAllowList(t *testing.T) {
	bin := probe(t)
	listed := map[uintptr]bool{}
	for _, r := range rules(false) {
		listed[r.call] = true
	}
	var unlisted []string
	for nr := range 600 {
		if runtime.GOARCH == "amd64" && (nr == 335 || nr == 336) {
			continue // uretprobe and uprobe: the kernel answers them before the filter, with SIGILL
		}
		if !listed[uintptr(nr)] {
			unlisted = append(unlisted, fmt.Sprint(nr))
		}
	}
	arguments := map[string]string{
		"open for writing":         fmt.Sprintf("%d,-100,S,%#x,0", unix.SYS_OPENAT, unix.O_WRONLY),
		"open for both":            fmt.Sprintf("%d,-100,S,%#x,0", unix.SYS_OPENAT, unix.O_RDWR),
		"create":                   fmt.Sprintf("%d,-100,S,%#x,0x180", unix.SYS_OPENAT, unix.O_CREAT),
		"truncate":                 fmt.Sprintf("%d,-100,S,%#x,0", unix.SYS_OPENAT, unix.O_TRUNC),
		"a mere path":              fmt.Sprintf("%d,-100,S,%#x,0", unix.SYS_OPENAT, unix.O_PATH),
		"an unnamed file":          fmt.Sprintf("%d,-100,S,%#x,0x180", unix.SYS_OPENAT, unix.O_TMPFILE|unix.O_RDWR),
		"a process":                fmt.Sprintf("%d,%#x", unix.SYS_CLONE, int(unix.SIGCHLD)),
		"a vforked process":        fmt.Sprintf("%d,%#x", unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|int(unix.SIGCHLD)),
		"a user namespace":         fmt.Sprintf("%d,%#x", unix.SYS_CLONE, unix.CLONE_NEWUSER|int(unix.SIGCHLD)),
		"threads with a namespace": fmt.Sprintf("%d,%#x", unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_THREAD|unix.CLONE_SIGHAND|unix.CLONE_NEWNET),
		"the parent's limits":      fmt.Sprintf("%d,P,%d,0,0", unix.SYS_PRLIMIT64, unix.RLIMIT_NOFILE),
		"its own limits":           fmt.Sprintf("%d,0,%d,S,0", unix.SYS_PRLIMIT64, unix.RLIMIT_CORE),
		"the parent's processors":  fmt.Sprintf("%d,P,8,S", unix.SYS_SCHED_GETAFFINITY),
		"the parent's group":       fmt.Sprintf("%d,P", unix.SYS_GETPGID),
		"writable code":            fmt.Sprintf("%d,0,4096,7,%#x,-1,0", unix.SYS_MMAP, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS),
		"new code":                 fmt.Sprintf("%d,0,0,%#x", unix.SYS_MPROTECT, unix.PROT_READ|unix.PROT_EXEC),
		"signals for files":        fmt.Sprintf("%d,0,%d,P", unix.SYS_FCNTL, unix.F_SETOWN),
		"a watch on a folder":      fmt.Sprintf("%d,0,%d,1", unix.SYS_FCNTL, unix.F_NOTIFY),
		"input for a terminal":     fmt.Sprintf("%d,0,%#x,S", unix.SYS_IOCTL, unix.TIOCSTI),
		"core files":               fmt.Sprintf("%d,%d,1", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE),
		"ptrace by anybody":        fmt.Sprintf("%d,%#x,-1", unix.SYS_PRCTL, unix.PR_SET_PTRACER),
	}
	for user, as := range users() {
		for _, landlock := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, Landlock %v", user, landlock), func(t *testing.T) {
				state, out, err := runCaged(t, Spec{Bin: bin, Args: unlisted, Landlock: landlock}, as)
				require.NoError(t, err, "%s", out)
				if !state.Seccomp {
					t.Skip("this kernel has no seccomp filters")
				}
				assert.True(t, state.Limits && state.NoNewPrivileges && state.CapabilitiesDropped, "%+v", state)
				lines := strings.Split(strings.TrimSpace(out), "\n")
				require.Len(t, lines, len(unlisted))
				for _, line := range lines {
					fields := strings.Fields(line)
					errno, _ := strconv.Atoi(fields[2])
					assert.Contains(t, []syscall.Errno{unix.EPERM, unix.ENOSYS}, syscall.Errno(errno), "call %s", fields[0])
				}
				for name, args := range arguments {
					_, out, err := runCaged(t, Spec{Bin: bin, Args: []string{args}, Landlock: landlock}, as)
					require.NoError(t, err, name)
					assert.Regexp(t, `^\d+ -1 1\n$`, out, name) // EPERM
				}
				_, out, err = runCaged(t, Spec{Bin: bin, Args: []string{fmt.Sprintf("%d,-100,S,0,0", unix.SYS_OPENAT)}, Landlock: landlock}, as)
				require.NoError(t, err)
				if state.Landlock > 0 || as != nil {
					assert.Contains(t, out, fmt.Sprint(" -1 ", int(unix.EACCES)), "a stranger's file")
				}
			})
		}
	}
	t.Logf("%d calls that are not listed, %d with arguments", len(unlisted), len(arguments))
}

// TestLimitsApplyBeforeTheProgramStarts checks that the limits are in force
// when the program starts.
func TestLimitsApplyBeforeTheProgramStarts(t *testing.T) {
	cat, err := exec.LookPath("cat")
	require.NoError(t, err)
	cat, err = filepath.EvalSymlinks(cat)
	require.NoError(t, err)
	_, out, err := runCaged(t, Spec{Bin: cat, Args: []string{"/proc/self/limits", "/proc/self/status"}, Memory: 1 << 30, CPU: 7}, nil)
	require.NoError(t, err)
	for _, want := range []string{`Max address space +1073741824 +1073741824`, `Max cpu time +7 +12`, `Max file size +0 +0`, `Max core file size +0 +0`, `Max open files +64 +64`, `NoNewPrivs:\t1`} {
		assert.Regexp(t, want, out)
	}
}

// TestSetupFails checks that a missing program is reported and that nothing
// else runs.
func TestSetupFails(t *testing.T) {
	_, _, err := runCaged(t, Spec{Bin: "/nonexistent/ffmpeg"}, nil)
	assert.ErrorIs(t, err, ErrSetup)
	assert.ErrorContains(t, err, "no such file")
}
