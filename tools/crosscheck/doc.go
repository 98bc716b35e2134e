// Package crosscheck compares the engine with whisper.cpp's published Go
// bindings: the same model and sound must produce the same text. The bindings
// only serve as a check, because they decode one window after another, keep
// every segment of a recording in the library, and cannot be opened at run
// time. They are linked against libwhisper, so the code has the build tag
// crosscheck, which run.sh sets together with the library's paths; `make test`
// runs it.
//
// With the additional tag long, it also measures the error rate of both over
// testdata/demo.
package crosscheck
