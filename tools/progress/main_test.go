package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestProgress(t *testing.T) {
	for name, c := range map[string]struct {
		events string
		want   string
		failed bool
	}{
		"pass": {`{"Action":"start","Package":"github.com/otograph/otograph/asr"}
{"Action":"run","Package":"github.com/otograph/otograph/asr","Test":"TestA"}
{"Action":"output","Package":"github.com/otograph/otograph/asr","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"github.com/otograph/otograph/asr","Test":"TestA"}
{"Action":"pass","Package":"github.com/otograph/otograph/asr","Elapsed":1.25}`, "ok   ./asr 1.2 s\n", false},
		"fail": {`{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p","Elapsed":2}`, ".p:     a_test.go:1: wrong\nFAIL .p 2.0 s\n", true},
		"race in a test that passes": {`{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA","Output":"WARNING: DATA RACE\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p","Elapsed":2}`, ".p: WARNING: DATA RACE\nFAIL .p 2.0 s\n", true},
		"panic": {`{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: x\n"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p","Elapsed":2}`, "FAIL\npanic: x\nFAIL .p 2.0 s\n", true},
		"build": {`{"ImportPath":"p","Action":"build-output","Output":"undefined: x\n"}
{"ImportPath":"p","Action":"build-fail"}`, "undefined: x\n", true},
		"skip": {`{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: no ffmpeg\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"skip","Package":"p","Elapsed":0}`, "skipped 1: no ffmpeg\n", false},
		"no event": {"go: cannot find main module", "go: cannot find main module", false},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			p := newPrinter(&out)
			for line := range strings.Lines(c.events) {
				p.line([]byte(line))
			}
			p.summary()
			assert.Equal(t, c.want, out.String())
			assert.Equal(t, c.failed, p.failed)
		})
	}
}
