// Package crosscheck compares the engine with the Go bindings that whisper.cpp
// publishes: same model and sound, hence the same text. They stay a
// check: they decode one window after another, keep every segment of a recording
// in the library, and cannot be opened at run time. As they are linked against
// libwhisper, there is code only under the build tag crosscheck, which run.sh
// sets together with the paths of the library; `make test` runs it.
//
// With the tag long as well it also measures the error rate of both over
// testdata/demo.
package crosscheck
