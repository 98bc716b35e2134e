package audio

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func md5Hex(b []byte) string {
	s := md5.Sum(b)
	return hex.EncodeToString(s[:])
}

func bufioReader(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }

type procStat struct {
	state  string
	parent int
}

// readStat reads /proc/PID/stat; its process name may contain spaces and
// brackets.
func readStat(pid int) (procStat, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, false
	}
	_, rest, _ := strings.Cut(string(b[bytes.LastIndexByte(b, ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return procStat{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	return procStat{fields[0], parent}, true
}
