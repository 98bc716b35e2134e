package stages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/diarize/networks"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/voices"
)

// exactWindows is the most voice windows that are all clustered: 38 minutes of
// speech in 18 MB. Longer recordings are clustered on such a sample.
const exactWindows = 3000

func (s *Stages) clusterOptions(e diarize.Embedder) diarize.ClusterOptions {
	opt := diarize.DefaultOptions().ClusterOptions
	opt.NumSpeakers = *cmp.Or(s.Options.NumSpeakers, new(0))
	opt.MinSpeakers, opt.MaxSpeakers = *s.Options.MinSpeakers, *s.Options.MaxSpeakers
	opt.SingleSpeakerThreshold = *s.Options.DiarizeSingleSpeakerThreshold
	opt.SameSpeakerCosine = e.SameSpeaker()
	opt.ExactWindows = exactWindows
	return opt
}

// Voices are embedded in more than the transcript's speech: a stretch begins at
// this share of the speech threshold, ends below half of that, and includes
// short pauses. This misses 7 instead of 12 % of the speech in seven leveled
// meetings and calls.
const (
	voiceShare = 0.3
	voicePause = 0.2 // seconds
)

// voiced returns the stretches of a recording that contain voices.
func (s *Stages) voiced(pcm *audio.PCM, speech *Speech) ([]audio.Span, error) {
	if len(speech.Probabilities) == 0 { // the caller selected the speech
		return speech.Spans, nil
	}
	opt := s.SpeechOptions()
	opt.Threshold *= voiceShare
	opt.Exit = opt.Threshold / 2
	opt.MinSilence = max(opt.MinSilence, voicePause)
	probs := make([]float32, len(speech.Probabilities))
	for i, p := range speech.Probabilities {
		probs[i] = float32(p) / 255
	}
	return vad.Refined(probs, pcm, opt)
}

// Embed computes a recording's embeddings; alone means that it has one speaker.
func (s *Stages) Embed(ctx context.Context, pcm *audio.PCM, speech *Speech, alone bool) (*diarize.Embeddings, error) {
	return compute(ctx, s.Gate, s.Engines.Embedder, func(e diarize.Embedder) (*diarize.Embeddings, error) {
		opt := diarize.EmbedOptions{MinSegment: *s.Options.DiarizeMinSegmentSec}
		e = workingEmbedder{e, s}
		if alone {
			return diarize.Embed(ctx, e, pcm, speech.Spans, opt)
		}
		spans, err := s.voiced(pcm, speech)
		if err != nil {
			return nil, err
		}
		segmenter, err := s.Engines.Segmenter()
		if err != nil {
			return nil, err
		}
		if segmenter != nil {
			opt.Segmenter = workingSegmenter{segmenter, s.working}
		}
		return diarize.Embed(ctx, e, pcm, spans, opt)
	})
}

// Cluster groups the voices by speaker. If a transcription is known, stretches
// without text that are not surely speech get a speaker only if the voice is
// clear, and a short sentence has the speaker with its voice.
func (s *Stages) Cluster(ctx context.Context, voices *diarize.Embeddings, speech *Speech, transcription *Transcription) (*diarize.Result, error) {
	return compute(ctx, s.Gate, s.Engines.Embedder, func(e diarize.Embedder) (*diarize.Result, error) {
		opt := s.clusterOptions(e)
		if transcription != nil {
			text := transcription.Transcript.Segments
			voices = voices.Filter(func(span audio.Span) bool { return hasText(text, span) || len(text) > 0 && speech.sure(span) }, true)
			for _, sentence := range transcription.Transcript.Segments {
				opt.Passages = append(opt.Passages, audio.Span{Start: int(sentence.Start * audio.SampleRate), End: int(sentence.End * audio.SampleRate)})
			}
		}
		return diarize.Cluster(ctx, voices, opt)
	})
}

// Online returns a namer of the voices of a live session.
func (s *Stages) Online() (*diarize.Online, error) {
	e, err := s.Engines.Embedder()
	if err != nil {
		return nil, err
	}
	return diarize.NewOnline(e, s.clusterOptions(e))
}

// EmbedSides computes the voice embeddings of each side, by channel.
func (s *Stages) EmbedSides(ctx context.Context, r Recording, sides []Side) (map[int]*diarize.Embeddings, error) {
	voices := map[int]*diarize.Embeddings{}
	for _, side := range sides {
		v, err := s.Embed(ctx, r.Of(side), side.Speech, r.Split != nil)
		if err != nil {
			return nil, err
		}
		voices[side.Channel] = v
	}
	return voices, nil
}

// ClusterSides groups the voices of the mix by speaker, or makes each channel
// one speaker; voices are the embeddings of the sides, by channel.
func (s *Stages) ClusterSides(ctx context.Context, sides []Side, voices map[int]*diarize.Embeddings, transcription *Transcription) (*diarize.Result, error) {
	if mix, ok := voices[Mix]; ok {
		return s.Cluster(ctx, mix, AllSpeech(sides), transcription)
	}
	return compute(ctx, s.Gate, s.Engines.Embedder, func(e diarize.Embedder) (*diarize.Result, error) {
		opt := s.clusterOptions(e)
		opt.NumSpeakers = 1
		var list []*diarize.Result
		for _, side := range sides {
			own := map[audio.Span]bool{}
			for _, span := range side.Speech.Spans {
				own[span] = true
			}
			voice, err := diarize.Cluster(ctx, voices[side.Channel].Filter(func(span audio.Span) bool { return own[span] }, false), opt)
			if err != nil {
				return nil, err
			}
			list = append(list, voice)
		}
		return sideVoices(sides, list), nil
	})
}

// joinedSeconds is the most speech that OneVoice embeds end to end.
const joinedSeconds = 600

// OneVoice returns the vector of a recording's only voice and the seconds of
// its speech. Any other number of voices is a permanent error.
func (s *Stages) OneVoice(ctx context.Context, pcm *audio.PCM) (vector []float32, seconds float64, err error) {
	speech, err := s.DetectSpeech(ctx, pcm)
	if err != nil {
		return nil, 0, err
	}
	seconds = Seconds(speech.Spans)
	if len(speech.Spans) == 0 {
		return nil, 0, spec.Permanent(errors.New("expected speech, found none"))
	}
	spans := speech.Spans
	if seconds < joinedSeconds {
		// The vector of a short word is much less reliable than that of several.
		var samples []float32
		for _, s := range spans {
			samples = append(samples, pcm.Samples(s.Start, s.End)...)
		}
		pcm = audio.FromSamples(samples)
		defer pcm.Close()
		spans = []audio.Span{{End: pcm.Len()}}
	}
	voices, err := s.Embed(ctx, pcm, &Speech{Spans: spans}, false)
	if err != nil {
		return nil, seconds, err
	}
	all, err := s.Cluster(ctx, voices, speech, nil)
	if err != nil {
		return nil, seconds, err
	}
	if len(all.Speakers) != 1 {
		return nil, seconds, spec.Permanent(fmt.Errorf("expected one voice, found %d: cut out the other speakers", len(all.Speakers)))
	}
	if seconds >= joinedSeconds {
		return all.Speakers[0].Embedding, seconds, nil
	}
	// One vector of all speech is more reliable than the mean of short windows.
	whole, err := compute(ctx, s.Gate, s.Engines.Embedder, func(e diarize.Embedder) ([][]float32, error) {
		return workingEmbedder{e, s}.Embed(ctx, pcm, spans)
	})
	return slices.Concat(whole...), seconds, err
}

// Names returns the names of the speakers whose voices are in the register.
func (s *Stages) Names(register *voices.Register, f *Findings) map[string]string {
	m, ok := s.Engines.Set.Role(models.RoleEmbedder)
	if !ok || f.Speakers == nil || len(register.Voices) == 0 {
		return nil
	}
	speakers := make([]spec.SpeakerEmbedding, len(f.Speakers.Speakers))
	for i, s := range f.Speakers.Speakers {
		speakers[i] = spec.SpeakerEmbedding{SpeakerID: f.SpeakerName(i), Embedding: s.Embedding}
	}
	return voices.Names(register.Identify("", speakers, networks.KnownVoice(m)))
}
