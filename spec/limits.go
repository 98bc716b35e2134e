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
