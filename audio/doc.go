// Package audio decodes any recording to mono float32 samples at 16 kHz and
// describes it.
//
// WAV in all its forms is read in this process. Every other format is decoded
// by ffmpeg in a sandboxed child process. The container is recognized by its
// content, never by its name. ffmpeg is told exactly which demuxer to use and
// which decoders it may use, and it can open a single file. See Sandbox for
// what the sandbox consists of.
//
// Positions and lengths in a recording are seconds as float64, here and in every
// package of the module, because they are results of arithmetic on samples and go to
// JSON as they are; time.Duration is time on a clock, such as a timeout.
//
// Callers can rely on these rules:
//
//   - The samples of a PCM are finite and within [-1, 1]. NaN and infinite
//     samples become 0 and are counted.
//   - Several channels are averaged into one; channels that never carried a
//     signal are left out. Where the mean cancels (channels in antiphase), the
//     loudest channel is used instead. The decision is made for each half
//     second.
//   - If there are several audio tracks, the default one is decoded, or the
//     first if none is the default.
//   - A track that begins later than its file (edit lists, time stamps) is not
//     padded, and gaps in time stamps are not filled. Samples follow each other
//     without gaps, so no file can claim hours of silence; PCM.Timeline says when
//     they are heard.
//   - A cut or damaged recording is decoded as far as possible, and
//     Info.Truncated is set.
//   - Memory does not grow with the length of the recording: samples go to an
//     unnamed, memory-mapped file.
package audio
