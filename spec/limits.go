package spec

// Limits of the recordings that the interface accepts.
const (
	MinAudioBytes   = 1 << 10
	MaxAudioBytes   = 2 << 30
	MaxAudioSeconds = 5 * 3600.0
)

// Limits of the length of a known voice's recording, in seconds, and the
// tolerance for an encoder's padding.
const (
	ShortestVoice = 2
	LongestVoice  = 10
	VoiceSlack    = 0.1
)

// TimeFormat is the format of times: RFC 3339 in UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z07:00"
