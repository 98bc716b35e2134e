// Package audio decodes any recording to mono float32 samples at 16 kHz and
// describes it.
//
// WAV in all its forms is read in this process. Every other format is decoded by
// ffmpeg in a sandboxed child process. The container is recognized by its
// content, never by its name. ffmpeg gets exactly one demuxer and a list of
// decoders, and can open a single file. Sandbox lists the parts.
//
// A Span counts samples. Results have seconds as float64, because they are
// computed from sample counts and written to JSON unchanged; time.Duration is
// used for clock time, such as timeouts.
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
//     without gaps, so no file can claim hours of silence; PCM.Timeline
//     has their times.
//   - A cut or damaged recording is decoded as far as possible, and
//     Info.Truncated is set.
//   - Memory does not grow with the length of the recording: samples go to an
//     unnamed, memory-mapped file.
package audio
