// Package crosscheck compares the engine with the Go bindings that whisper.cpp
// publishes: same library, model and sound, hence the same text. It has code only under
// the build tag crosscheck, because the bindings are linked against libwhisper:
//
//	N=$PWD/third_party/native
//	export CGO_CFLAGS=-I$N/include
//	export CGO_LDFLAGS="-L$N/lib -Wl,-rpath,$N/lib -Wl,--disable-new-dtags"
//	go test -tags crosscheck ./asr/whisper/crosscheck
//
// With the tag long as well it also measures the error rate of both over testdata/demo.
package crosscheck
