// Package audio turns any recording into mono float32 samples at 16 kHz, and says what the recording is.
//
// WAV in all its forms is read in this process; every other format is decoded by ffmpeg as a caged child:
// the container is recognised here by its content (never by its name), ffmpeg is told exactly which demuxer to use
// and which decoders it may use, and it can open one file and nothing else. See Sandbox for what the cage is made of.
//
// Rules that a caller can rely on
//   - The samples of a PCM are finite and within [-1, 1]. NaN and infinite samples become 0 and are counted.
//   - Several channels become one by their mean; channels that never carried a signal do not weigh in. Where the mean
//     cancels (channels in antiphase), the loudest channel is taken instead. The decision is made per half second.
//   - Of several audio tracks the default one is decoded, else the first.
//   - A track that begins later than its file (edit lists, time stamps) is not padded, and gaps in time stamps are not
//     filled: samples stand one after the other, so that no file can claim hours of silence.
//   - What is left of a cut or damaged recording is decoded, and Info.Truncated is set.
//   - Memory does not grow with the length of the recording: samples go to a file that has no name and is mapped.
package audio
