package accounts

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed commonpasswords.txt
var commonPasswordsFile string

var commonPasswords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for line := range strings.Lines(commonPasswordsFile) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			words[strings.ToLower(line)] = true
		}
	}
	return words
})
