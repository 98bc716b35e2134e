package audio

import (
	"crypto/md5"
	"encoding/hex"
)

func md5Hex(b []byte) string {
	s := md5.Sum(b)
	return hex.EncodeToString(s[:])
}
