# Every target does what it needs first; `make help` lists them.
SHELL := /bin/bash
GO ?= go
BIN := bin/otograph
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
COMPILE = $(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/otograph
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help setup web build demo test test-long test-seeds test-web lint bench fmt release clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

setup: ## install what is missing: native libraries, and as root on Debian ffmpeg and a C compiler
	@bash third_party/setup.sh

web: ## build the page that serve offers (needs npm; without it the binary has no page)
	@bash web/build/build.sh

build: setup web ## build bin/otograph
	@$(COMPILE)

demo: setup ## transcribe the bundled recording: who spoke, what was said, what else was heard
	@$(COMPILE)
	@$(BIN) transcribe --demo testdata/conversation.flac

# Property tests draw from a fixed seed here, so that the result does not depend
# on luck; test-long and test-seeds draw from fresh ones.
test: setup ## run the tests with the race detector
	@RAPID_SEED=1 $(GO) test -race -timeout 14m ./...

test-long: setup ## run the slow tests too: hours of audio, leaks, soak, kill
	@$(GO) test -race -tags long -timeout 180m ./...

# PROPERTY_FILES hold property tests, PROPERTIES are the tests' names.
PROPERTY_FILES = $$(git grep -l 'rapid\.\(Check\|MakeCheck\)(' -- '*_test.go')
PROPERTIES = $$(awk '/^func Test/ {split($$2, n, "("); t = n[1]} /rapid\.(Check|MakeCheck)\(/ {print t}' $(PROPERTY_FILES) | sort -u | paste -sd '|')
test-seeds: setup ## run the property tests with fresh seeds
	@$(GO) test -count 1 -timeout 10m -run "^($(PROPERTIES))$$" $$(for f in $(PROPERTY_FILES); do echo ./$${f%/*}; done | sort -u)

test-web: build ## run the tests of the page in a headless Chromium
	@bash test/web/run.sh

lint: setup ## check format, vet and lint: Go, shell scripts, the page, Python
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt is needed on:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	@$(GO) vet ./...
	@$(GO) run $(GOLANGCI) run ./...
	@bash test/lint/run.sh

bench: setup ## run the micro benchmarks of every stage
	@$(GO) test -run '^$$' -bench . -benchtime 1x ./...

fmt: ## format the source
	@gofmt -w $$(git ls-files '*.go')

release: web ## build dist/: an archive for this platform, its SBOM and checksums
	@VERSION='$(VERSION)' GO='$(GO)' bash deploy/release/release.sh

clean: ## remove what was built and fetched
	@rm -rf bin dist third_party/native web/dist web/node_modules test/web/node_modules test/lint/node_modules
