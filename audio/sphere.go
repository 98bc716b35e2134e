package audio

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
)

// sphereMagic is the start of a NIST SPHERE file.
const sphereMagic = "NIST_1A\n"

// readSphereHeader reads a text with one "name -type value" per line, whose
// second line is its size, up to the first byte of samples.
func readSphereHeader(t *tape) (*wavHeader, error) {
	const what = "the SPHERE header"
	head, err := t.read(16, what)
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(strings.TrimSpace(string(head[len(sphereMagic):])))
	if err != nil || size < 16 || size > maxWAVHeader {
		return nil, t.fault(ErrCorrupt, "the SPHERE header says %q bytes, expected 16 to %d", head[len(sphereMagic):], maxWAVHeader)
	}
	if err := t.skip(int64(size-16), what); err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range bytes.Lines(t.kept[16:]) {
		words := strings.Fields(string(line))
		if len(words) > 0 && words[0] == "end_head" {
			break
		}
		if len(words) >= 3 {
			fields[words[0]] = words[2]
		}
	}
	return sphereFormat(t, fields)
}

// sphereFormat reads the fields of a SPHERE header.
func sphereFormat(t *tape, fields map[string]string) (*wavHeader, error) {
	number := func(name string, missing int64) int64 {
		text, ok := fields[name]
		if !ok {
			return missing
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	channels, rate, width, count := number("channel_count", 1), number("sample_rate", -1), number("sample_n_bytes", -1), number("sample_count", -1)
	h := &wavHeader{container: "sphere", order: binary.LittleEndian, data: untilEOF}
	switch coding := fields["sample_coding"]; coding {
	case "", "pcm":
		h.tag = tagPCM
	case "ulaw", "mu-law":
		h.tag = tagMuLaw
	case "alaw":
		h.tag = tagALaw
	default:
		return nil, t.fault(ErrUnsupported, "the SPHERE header says sample_coding %q, expected pcm, ulaw or alaw; w_decode and sph2pipe write pcm", coding)
	}
	if fields["sample_byte_format"] == "10" {
		h.order = binary.BigEndian
	}
	switch {
	case channels < 1 || channels > maxChannels:
		return nil, t.fault(ErrCorrupt, "the SPHERE header says channel_count %q, expected 1 to %d", fields["channel_count"], maxChannels)
	case rate < minWAVRate || rate > maxWAVRate:
		return nil, t.fault(ErrCorrupt, "the SPHERE header says sample_rate %q, expected %d to %d", fields["sample_rate"], minWAVRate, maxWAVRate)
	}
	h.channels, h.rate, h.width, h.align = int(channels), int(rate), int(width), int(width*channels)
	if !h.setConverter() || h.tag == tagPCM && width == 1 { // no program writes signed bytes
		return nil, t.fault(ErrUnsupported, "the SPHERE header says sample_n_bytes %q, expected 1 for ulaw and alaw, 2 to 4 for pcm", fields["sample_n_bytes"])
	}
	if count >= 0 && count < 1<<40 {
		h.data = count * int64(h.align)
	}
	return h, nil
}
