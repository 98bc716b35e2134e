package audio

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/otograph/otograph/internal/system/cage"
	"github.com/otograph/otograph/spec"
)

// audioDecoders lists the decoders that ffmpeg may use, none of them for images
// or video: a cover of 65535 × 65535 pixels is never decoded.
const audioDecoders = "aac,aac_fixed,aac_latm,libfdk_aac,ac3,eac3,ac3_fixed,truehd,mlp,dca,alac,als,amrnb,amrwb,libopencore_amrnb,libopencore_amrwb,ape,atrac1,atrac3,atrac3plus," +
	"cook,sipr,ra_144,ra_288,ralf,dsd_lsbf,dsd_msbf,dsd_lsbf_planar,dsd_msbf_planar,dvaudio,flac,g722,g723_1,g726,g726le,g729,gsm,gsm_ms,libgsm,libgsm_ms,ilbc," +
	"mp1,mp1float,mp2,mp2float,mp3,mp3float,mp3adu,mp3adufloat,mp3on4,mp3on4float,mpc7,mpc8,nellymoser,opus,libopus,qcelp,qdm2,s302m,shorten,speex,libspeex,tak,truespeech,tta," +
	"vorbis,libvorbis,dss_sp,twinvq,8svx_exp,8svx_fib,libilbc,libcodec2,wavpack,wmalossless,wmapro,wmav1,wmav2,wmavoice,xma1,xma2,mace3,mace6," +
	"adpcm_ms,adpcm_ima_wav,adpcm_ima_qt,adpcm_swf,adpcm_yamaha,adpcm_ct,adpcm_sbpro_2,adpcm_sbpro_3,adpcm_sbpro_4," +
	"pcm_alaw,pcm_mulaw,pcm_u8,pcm_s8,pcm_s16le,pcm_s16be,pcm_s24le,pcm_s24be,pcm_s32le,pcm_s32be,pcm_s64le,pcm_s64be,pcm_u16le,pcm_u16be,pcm_u24le,pcm_u24be,pcm_u32le,pcm_u32be," +
	"pcm_f16le,pcm_f24le,pcm_f32le,pcm_f32be,pcm_f64le,pcm_f64be,pcm_s8_planar,pcm_s16be_planar,pcm_s16le_planar,pcm_s24le_planar,pcm_s32le_planar,pcm_bluray,pcm_dvd"

// findFFmpeg returns the absolute path of ffmpeg with links resolved, because
// the sandbox is built around that file.
func findFFmpeg(o Options) (string, error) {
	want := cmp.Or(o.FFmpeg, "ffmpeg")
	path, err := exec.LookPath(want)
	if err == nil {
		if path, err = filepath.Abs(path); err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
	}
	if err != nil {
		// Not wrapped, because a missing program is not a missing recording.
		return "", fmt.Errorf("%w: this format is decoded by ffmpeg, and %q cannot be run (%v); install it (Debian, Ubuntu: apt-get install ffmpeg) or use WAV", ErrDecoderMissing, want, err) //nolint:errorlint
	}
	return path, nil
}

// report collects what ffmpeg prints about its input.
type report struct {
	mu              sync.Mutex
	output          bool // the description of the input has ended
	duration, start float64
	estimated       bool
	tracks          []track
	kinds           []string
	video           bool
	mapped          int // index of the decoded stream
	choice          int // Options.Track
	problems        []string
	faults          int
	unable          bool // ffmpeg cannot write Matroska
	sealed          bool // all tracks are encrypted
	stamps          stamps
	primer          float64  // seconds that an encoder put before the sound, which the file does not declare
	corrupt         []int    // streams with damaged packets, the first hundred
	rates           []string // of the decoded frames, as ffmpeg writes them
}

type track struct {
	index    int
	language string // as declared by the file, "" if it is none
	codec    string
	fallback bool // not marked as default
	sealed   bool // encrypted
}

var (
	streamLine   = regexp.MustCompile(`^  Stream #0:(\d+)(?:\[0x[0-9a-f]+\])?(?:\(([^)]*)\))?: (\w+): ([^ ,]+)(.*)$`)
	mappingLine  = regexp.MustCompile(`^  Stream #0:(\d+) -> #0:0`)
	durationLine = regexp.MustCompile(`^  Duration: (?:N/A|(\d+):(\d\d):(\d\d(?:\.\d+)?))(?:, start: (-?[\d.]+))?`)
	// ffmpeg counts the times of a transport or program stream from its audio,
	// which begins some microseconds later than the file.
	corruptLine    = regexp.MustCompile(`^Packet corrupt \(stream = (\d+)`)
	correctionLine = regexp.MustCompile(`^Correcting start time by (\d+)`)
	rateLine       = regexp.MustCompile(` samplerate:\d+ `)
	sealedTag      = regexp.MustCompile(`\((drms|aavd) / `)  // of FairPlay and Audible
	sealedKey      = regexp.MustCompile(`^ +enc_key_id +: `) // of Matroska, after the track's line
	languageCode   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{1,34}$`)
	logPrefix      = regexp.MustCompile(`^(?:\[[^\]]* @ 0x[0-9a-f]+\] )?\[(verbose|info|warning|error|fatal|panic)\] (.*)$`)
)

// line parses one line of ffmpeg's output at "-loglevel repeat+level+verbose".
func (r *report) line(text string) {
	m := logPrefix.FindStringSubmatch(strings.TrimRight(text, "\r\n"))
	if m == nil {
		return
	}
	level, text := m[1], m[2]
	r.mu.Lock()
	defer r.mu.Unlock()
	if level == "verbose" {
		if m := correctionLine.FindStringSubmatch(text); m != nil {
			late, _ := strconv.ParseFloat(m[1], 64)
			if late /= 1e6; late <= longestGap {
				r.stamps.late = late
			}
			r.stamps.dropped = r.stamps.dropped || late > longestGap
		}
		if m := rateLine.FindString(text); m != "" && !slices.Contains(r.rates, m) {
			r.rates = append(r.rates, m)
		}
		return
	}
	if level == "info" {
		if r.output = r.output || strings.HasPrefix(text, "Output #0"); !r.output {
			r.describe(text)
		}
		return
	}
	if level == "warning" {
		r.estimated = r.estimated || strings.HasPrefix(text, "Estimating duration from bitrate")
		r.sealed = r.sealed || strings.Contains(text, "DRM protected stream") // Windows Media
		if m := corruptLine.FindStringSubmatch(text); m != nil && len(r.corrupt) < 100 {
			stream, _ := strconv.Atoi(m[1])
			r.corrupt = append(r.corrupt, stream) // counts if it is the decoded stream
		}
		if !strings.Contains(text, "corrupt") || corruptLine.MatchString(text) {
			return
		}
	}
	if strings.Contains(text, "not on whitelist") { // an image or video, which is not decoded
		return
	}
	r.unable = r.unable || strings.Contains(text, "output format 'matroska'")
	r.faults++
	if len(r.problems) < 3 {
		r.problems = append(r.problems, text)
	}
}

// frame records the time of a decoded frame; NaN means that it has none.
func (r *report) frame(time, length float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// ffmpeg counts from the beginning of the file even if that is before 0.
	time += min(0, r.start)
	if !r.video {
		time -= r.primer
	}
	r.stamps.frame(time, length)
}

// wmaPrimer returns the seconds of one frame, which encoders of Windows Media
// Audio put before the sound: the time stamps of a file without video begin
// there (frame lengths as in ffmpeg's ff_wma_get_frame_len_bits).
func wmaPrimer(codec string, rate int) float64 {
	samples := 2048
	switch {
	case codec != "wmav1" && codec != "wmav2":
		return 0
	case rate <= 16000:
		samples = 512
	case rate <= 22050 || rate <= 32000 && codec == "wmav1":
		samples = 1024
	}
	return float64(samples) / float64(rate)
}

// decoded returns the position of the decoded track, −1 if it is not known.
func (r *report) decoded() int {
	return slices.IndexFunc(r.tracks, func(t track) bool { return t.index == r.mapped })
}

// codec returns the name of the decoded track's codec.
func (r *report) codec() string {
	if i := r.decoded(); i >= 0 {
		return r.tracks[i].codec
	}
	return ""
}

func (r *report) describe(text string) {
	if m := mappingLine.FindStringSubmatch(text); m != nil {
		r.mapped, _ = strconv.Atoi(m[1])
		return
	}
	if m := durationLine.FindStringSubmatch(text); m != nil {
		h, _ := strconv.ParseFloat(m[1], 64) // "" for N/A: 0
		min, _ := strconv.ParseFloat(m[2], 64)
		sec, _ := strconv.ParseFloat(m[3], 64)
		r.duration = h*3600 + min*60 + sec
		r.start, _ = strconv.ParseFloat(m[4], 64)
		return
	}
	if n := len(r.kinds); n > 0 && r.kinds[n-1] == "audio" && sealedKey.MatchString(text) {
		r.tracks[len(r.tracks)-1].sealed = true
	}
	m := streamLine.FindStringSubmatch(text)
	if m == nil || len(r.kinds) >= 1000 {
		return
	}
	r.kinds = append(r.kinds, strings.ToLower(m[3]))
	switch m[3] {
	case "Video":
		r.video = r.video || !strings.Contains(m[5], "(attached pic)")
	case "Audio":
		index, _ := strconv.Atoi(m[1])
		language := m[2]
		if language == "und" || !languageCode.MatchString(language) { // undetermined, or any text
			language = ""
		}
		r.tracks = append(r.tracks, track{index, language, m[4], !strings.Contains(m[5], "(default)"), sealedTag.MatchString(m[5])})
	}
}

// wanted returns the chosen track, the default one, or else the first one.
func (r *report) wanted() (track, bool) {
	i := r.choice - 1
	if r.choice <= 0 {
		i = max(0, slices.IndexFunc(r.tracks, func(t track) bool { return !t.fallback }))
	}
	if i >= len(r.tracks) {
		return track{}, false
	}
	return r.tracks[i], true
}

// trackNames returns the number, codec and language of each audio track.
func (r *report) trackNames() (list []string) {
	for i, t := range r.tracks {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%d (%s) %s", i+1, t.codec, t.language)))
	}
	return list
}

// unchosen returns the value of Info.Tracks.
func (r *report) unchosen() []string {
	decoded := r.decoded()
	if r.choice > 0 || len(r.tracks) < 2 || decoded < 0 {
		return nil
	}
	list := r.trackNames()
	return slices.Concat(list[decoded:decoded+1], list[:decoded], list[decoded+1:])
}

// declared returns the length of the audio that the container declares, or 0 if
// it declares none or only estimates it.
func (r *report) declared(c container) float64 {
	if r.estimated || c.length == guessed {
		return 0
	}
	return r.duration
}

// complaint returns ffmpeg's messages in printable form, without our paths.
func (r *report) complaint() string {
	if len(r.problems) == 0 {
		return "the decoder reported no reason"
	}
	text := strings.ReplaceAll(strings.Join(r.problems, "; "), "file:"+inputPath+": ", "")
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, text)
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return text
}

// leastRate is the least number of bytes per second of sound.
const leastRate = 250

// believes reports whether a declared length in seconds is used. Otherwise the
// recording is decoded and counted: if the length is estimated, if the file has
// too few bytes for it (an exact length only if it is over the limit, because
// silence may be small), or if two time stamps, which may jump, put it over the
// limit.
func (in *input) believes(seconds float64, o Options) bool {
	allowed := o.checkDuration(in.name, seconds) == nil
	switch plausible := float64(in.info.Size) >= seconds*leastRate; in.length {
	case exact:
		return plausible || allowed
	case likely:
		return plausible
	case declared:
		return plausible && allowed
	case guessed:
	}
	return false
}

// errRemap is returned if ffmpeg chose another track than the wanted one.
var errRemap = errors.New("another track is wanted")

// decodeFFmpeg decodes the audio track, or, if seconds > 0, its beginning.
func (in *input) decodeFFmpeg(ctx context.Context, o Options, rec *recorder, seconds float64) (*report, *wavHeader, error) {
	bin, err := findFFmpeg(o)
	if err != nil {
		return nil, nil, fmt.Errorf("audio: %q (%s): %w", in.name, in.container.name, err)
	}
	if in.container.demuxer == "mov" && sealedBoxes(in.file, in.info.Size) {
		return nil, nil, in.sealed()
	}
	a := attempt{bin: bin, stop: seconds, track: -1, landlock: true}
	for {
		rep, h, err := in.decodeOnce(ctx, o, rec, a)
		switch {
		case errors.Is(err, errRemap) && a.track < 0:
			t, _ := rep.wanted()
			a.track = t.index
		case a.landlock && errors.Is(err, errUnusable) && context.Cause(ctx) == nil:
			// The sandbox may hide ffmpeg's folder. Test that without the
			// recording, so that no recording can weaken the sandbox by its
			// decoder's exit status.
			if _, _, works := ffmpegVersion(ctx, bin, true); works == nil {
				return rep, h, err
			}
			a.landlock = false
		default:
			return rep, h, err
		}
	}
}

// errUnusable is returned if ffmpeg could not be started.
var errUnusable = errors.New("the decoder could not be started")

// attempt is one run of ffmpeg.
type attempt struct {
	bin      string
	stop     float64 // seconds to decode; 0 for all
	track    int     // to decode; -1 for ffmpeg's default
	landlock bool    // whether the sandbox hides the file system
}

func (in *input) decodeOnce(ctx context.Context, o Options, rec *recorder, a attempt) (*report, *wavHeader, error) {
	name, c := in.name, in.container
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rep := &report{mapped: -1, choice: o.Track}
	ready := make(chan struct{}) // closed once the track is known
	var once sync.Once
	watch := func(text string) {
		rep.line(text)
		rep.mu.Lock()
		defer rep.mu.Unlock()
		if err := rep.refusal(in, o, a); err != nil {
			cancel(err)
		}
		if rep.mapped >= 0 {
			once.Do(func() { close(ready) })
		}
	}
	var h *wavHeader
	spec := cage.Spec{Bin: a.bin, Args: ffmpegArgs(c, a), Input: in.file, Memory: childMemory, CPU: cpuSeconds(o.MaxDecodeTime), Landlock: a.landlock}
	_, err := caged{spec, o.MaxDecodeTime}.run(ctx, watch, func(out io.Reader) error {
		m := &matroskaReader{r: bufio.NewReaderSize(out, 4096), block: rep.frame} // less than wavChunk, so that samples bypass it
		var err error
		if h, err = m.readHeader(); errors.Is(err, io.EOF) {
			return nil // no samples: the exit status shows the reason
		} else if err != nil {
			return machineError(name, "read what the decoder wrote", err)
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Second): // a future ffmpeg may not print the track; then its default is used
		}
		rep.primer = wmaPrimer(rep.codec(), h.rate)
		if _, err = decodeWAV(ctx, m, h, rec); errors.Is(err, errMatroska) {
			return machineError(name, "read what the decoder wrote", err)
		}
		return err
	})
	if len(rep.rates) > 1 && (c == mp3Container || c == adtsContainer) { // they have no time stamps; ffmpeg's follow the rate of the first frame
		rep.stamps = stamps{}
	}
	if err = rep.judge(err, name, a.bin, o); err == nil && (h == nil || rec.count == 0) {
		err = rep.nothing(name, c)
	}
	return rep, h, err
}

// sealed returns the error for encrypted sound.
func (in *input) sealed() error {
	return fault(ErrUnsupported, in.name, "its sound is encrypted (DRM), expected an unprotected recording")
}

// refusal returns the error for an encrypted track, for one that is not the
// wanted one, or for a declared length over the limit.
func (r *report) refusal(in *input, o Options, a attempt) error {
	t, ok := r.wanted()
	if r.sealed || r.mapped >= 0 && ok && t.sealed {
		return in.sealed()
	}
	if r.mapped >= 0 {
		if r.choice > len(r.tracks) {
			return fault(ErrNoAudio, in.name, "audio track %d is not there, expected one of: %s", r.choice, strings.Join(r.trackNames(), ", "))
		}
		if ok && a.track < 0 && r.mapped != t.index {
			return errRemap
		}
	}
	if d := r.declared(in.container); r.output && in.believes(d, o) {
		return o.checkDuration(in.name, d)
	}
	return nil
}

// cpuSeconds returns the limit of processor time for a wall-clock limit.
func cpuSeconds(wall time.Duration) uint64 {
	if wall < 0 {
		return math.MaxUint32
	}
	// With one thread the wall clock expires first.
	return uint64(wall/time.Second) + 10
}

// ffmpegArgs returns the arguments that decode a sandboxed input to samples in
// Matroska, which holds the time of each frame.
func ffmpegArgs(c container, a attempt) []string {
	args := []string{
		"-hide_banner", "-nostats", "-nostdin", "-loglevel", "repeat+level+verbose",
		"-dts_delta_threshold", strconv.Itoa(longestGap), "-analyzeduration", "60000000", "-probesize", "50000000",
		"-protocol_whitelist", "file", "-format_whitelist", c.demuxer, "-codec_whitelist", audioDecoders, "-threads", "1",
		"-f", c.demuxer, "-i", "file:" + inputPath, "-vn", "-sn", "-dn", "-map_metadata", "-1", "-map_chapters", "-1",
	}
	if c.name == "flac" { // its frames carry checksums, and a wrong one marks the recording as damaged
		args = append([]string{"-err_detect", "crccheck"}, args...)
	}
	if a.track >= 0 {
		args = append(args, "-map", "0:"+strconv.Itoa(a.track))
	}
	if a.stop > 0 {
		args = append(args, "-t", strconv.FormatFloat(a.stop, 'f', 3, 64))
	}
	return append(args, "-c:a", "pcm_f32le", "-bitexact", "-flush_packets", "0", "-f", "matroska", "pipe:1")
}

// judge explains how ffmpeg exited; nil if only the recording can be at fault.
func (r *report) judge(err error, name, bin string, o Options) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.Is(err, errWallClock):
		return fault(spec.ErrSlow, name, "ffmpeg needed more than %v", o.MaxDecodeTime)
	case errors.Is(err, cage.ErrSetup) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("audio: %q: %w: %s: %w", name, errUnusable, bin, err)
	case errors.As(err, &exit):
		status, _ := exit.Sys().(syscall.WaitStatus)
		switch {
		// Killed by others: the machine ran out of memory, or someone stopped it.
		case status.Signaled() && status.Signal() == syscall.SIGKILL:
			return fmt.Errorf("audio: %q: ffmpeg was killed", name)
		case status.Signaled():
			return fault(ErrCorrupt, name, "ffmpeg stopped with signal %q", status.Signal())
		case r.unable:
			return fmt.Errorf("audio: %q: %w: %s cannot write Matroska, which carries the samples here; install a complete ffmpeg", name, errUnusable, bin)
		case status.ExitStatus() == 127 && len(r.kinds) == 0: // the dynamic loader's exit status
			return fmt.Errorf("audio: %q: %w: %s", name, errUnusable, bin)
		}
		r.faults++ // judged by the decoded samples
	default:
		return err
	}
	return nil
}

// nothing returns the error for a recording without a single decoded sample.
func (r *report) nothing(name string, c container) error {
	if len(r.tracks) == 0 && c.name == "mp4" && !r.video {
		return fault(ErrCorrupt, name, "the mp4 file has no readable index; it is truncated or was never finished")
	}
	if len(r.tracks) == 0 && len(r.kinds) > 0 {
		return fault(ErrNoAudio, name, "the %s file contains no audio stream, only: %s", c.name, strings.Join(r.kinds[:min(5, len(r.kinds))], ", "))
	}
	if r.faults == 0 {
		return fault(ErrNoAudio, name, "the %s file contains no samples", c.name)
	}
	return fault(ErrCorrupt, name, "nothing could be decoded from the %s file: %s", c.name, r.complaint())
}

// incomplete reports whether a finished run left out part of the recording.
func (r *report) incomplete(in *input, o Options, seconds float64) bool {
	if r.faults > 0 || slices.Contains(r.corrupt, r.mapped) {
		return true
	}
	if r.video || len(r.tracks) > 1 || in.container.name == "mpegts" || in.container.name == "caf" { // their duration is that of the longest stream, of the time stamps or of whole packets
		return false
	}
	d := r.declared(in.container)
	return in.believes(d, o) && seconds+math.Max(0, r.start) < d-math.Max(0.1, d*0.001)
}
