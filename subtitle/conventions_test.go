package subtitle

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/spec"
)

// Conventions of players, editors and broadcasters. Users of other programs
// have reported each of them as missing.

// TestScriptsOfOtherPrograms: subtitle files of common editors are read without
// losing any text.
func TestScriptsOfOtherPrograms(t *testing.T) {
	const styles = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000\n\nSTYLE\n::cue(.y) { color: yellow }\n\nREGION\nid:fred\nwidth:40%\n\n" +
		"NOTE by hand\n\nintro\n00:00:01.000 --> 00:00:02.000 region:fred align:start\n<c.y>It will</c> be sunny\n\nSTYLE\n::cue() { color: red }\n\n" +
		"00:00:03.000 --> 00:00:04.000\ntomorrow at three fifteen.\n\nNOTE the end\n\n"
	for name, c := range map[string]struct {
		in    string
		texts []string
		out   string // in the input's format
	}{
		"no empty line between": {
			"1\n00:00:10,000 --> 00:00:11,000\nIt will be sunny\n2\n00:00:12,000 --> 00:00:13,000\ntomorrow at three fifteen.\n",
			[]string{"It will be sunny", "tomorrow at three fifteen."},
			"1\n00:00:10,000 --> 00:00:11,000\nIt will be sunny\n\n2\n00:00:12,000 --> 00:00:13,000\ntomorrow at three fifteen.\n\n",
		},
		"an empty line inside": {
			"1\n00:00:10,000 --> 00:00:11,000\nIt will be sunny\n\ntomorrow\n\n2\n00:00:12,000 --> 00:00:13,000\nat three fifteen.\n",
			[]string{"It will be sunny tomorrow", "at three fifteen."},
			"1\n00:00:10,000 --> 00:00:11,000\nIt will be sunny\ntomorrow\n\n2\n00:00:12,000 --> 00:00:13,000\nat three fifteen.\n\n",
		},
		"a number as text": {
			"1\n00:00:10,000 --> 00:00:11,000\n42\n\n2\n00:00:12,000 --> 00:00:13,000\n43\n\n00:00:14,000 --> 00:00:15,000\n44",
			[]string{"42", "43", "44"},
			"1\n00:00:10,000 --> 00:00:11,000\n42\n\n2\n00:00:12,000 --> 00:00:13,000\n43\n\n3\n00:00:14,000 --> 00:00:15,000\n44\n\n",
		},
		"no header's end in WebVTT": {
			"WEBVTT\n1\n00:01.000 --> 00:02.000\na\n2\n00:03.000 --> 00:04.000\nb",
			[]string{"a", "b"},
			"WEBVTT\n1\n\n00:00:01.000 --> 00:00:02.000\na\n\n2\n00:00:03.000 --> 00:00:04.000\nb\n\n",
		},
		"styles, regions, notes, names": {
			styles, []string{"It will be sunny", "tomorrow at three fifteen."}, styles,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ParseScript([]byte(strings.ReplaceAll(c.in, "\n", "\r\n")))
			require.NoError(t, err)
			var texts []string
			for i := range s.Cues {
				texts = append(texts, s.Text(i))
			}
			assert.Equal(t, c.texts, texts)
			var out bytes.Buffer
			require.NoError(t, s.Write(&out, s.VTT))
			assert.Equal(t, c.out, out.String())
		})
	}
}

// TestAnyTextSurvivesARoundTrip: any text is the same after writing and reading
// it, also when a script is rewritten in its own and in the other format.
func TestAnyTextSurvivesARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var cues []Cue
		var want []string
		for i := range rapid.IntRange(1, 4).Draw(t, "cues") {
			c := Cue{Start: 100 * float64(i), End: 100*float64(i) + 1, Text: anyText.Draw(t, "text")}
			if said := letters(read(cleanText(c.Text))); said != "" {
				want = append(want, said)
			}
			cues = append(cues, c)
		}
		for _, write := range []func(*bytes.Buffer) error{
			func(w *bytes.Buffer) error { return SRT(w, cues, Options{MaxLines: 2000, MaxSeconds: 60}) },
			func(w *bytes.Buffer) error { return VTT(w, cues, Options{MaxLines: 2000, MaxSeconds: 60}) },
		} {
			var out bytes.Buffer
			require.NoError(t, write(&out))
			for _, vtt := range []bool{false, true, true, false, false} {
				s, err := ParseScript(out.Bytes())
				if len(want) == 0 && err != nil {
					break // SubRip has no text without a cue
				}
				require.NoError(t, err, "%s", &out)
				var got []string
				for i := range s.Cues {
					if said := letters(read(s.Text(i))); said != "" {
						got = append(got, said)
					}
				}
				if len(want) > 0 {
					require.Equal(t, want, got, "%s", &out)
				}
				out.Reset()
				require.NoError(t, s.Write(&out, vtt))
			}
		}
	})
}

// read drops the invisible marks that separate text resembling a tag, and that
// isolate text from right to left.
func read(s string) string {
	return strings.NewReplacer(string(wordJoiner), "", "\u2067", "", "\u2069", "").Replace(s)
}

// laid lays out cues and checks the invariants of all subtitles: no cue
// overlaps another, and none is too short if there is time.
func laid(t require.TestingT, cues []Cue, o Options) []page {
	pages := layout(cues, o, nameColumns)
	for i := range pages {
		if i+1 < len(pages) {
			require.LessOrEqual(t, pages[i].end, pages[i+1].start, "no cue lies over another")
		}
		require.Greater(t, pages[i].end, pages[i].start)
	}
	return pages
}

// shown formats pages as "start–end text|text".
func shown(pages []page) []string {
	var out []string
	for _, p := range pages {
		var lines []string
		for _, v := range p.voices {
			lines = append(lines, speakerPrefix(v.speaker)+strings.Join(v.lines, "/"))
		}
		out = append(out, fmt.Sprintf("%g–%g %s", float64(milliseconds(p.start))/1000, float64(milliseconds(p.end))/1000, strings.Join(lines, "|")))
	}
	return out
}

func TestCuesFollowBroadcastersRules(t *testing.T) {
	for name, c := range map[string]struct {
		cues []Cue
		o    Options
		want []string
	}{
		"a sound ends where speech begins": {
			cues: []Cue{{Start: 0, End: 60, Event: true, Text: "Music"}, {Start: 2, End: 4, Speaker: "A", Text: "Good morning."}, {Start: 10, End: 12, Speaker: "B", Text: "Thank you."}},
			want: []string{"0–2 [Music]", "2–4 [A] Good morning.", "10–12 [B] Thank you."},
		},
		"a sound that begins under speech follows it": {
			cues: []Cue{{Start: 2, End: 4, Text: "Good morning."}, {Start: 3, End: 9, Event: true, Text: "Dog"}, {Start: 5, End: 5.2, Event: true, Text: "Door"}},
			want: []string{"2–4 Good morning.", "4–5 [Dog]", "5–5.8 [Door]"},
		},
		"a sound under speech only": {
			cues: []Cue{{Start: 2, End: 9, Text: "Good morning."}, {Start: 3, End: 4, Event: true, Text: "Narration, monologue"}},
			want: []string{"2–9 Good morning."},
		},
		"no sounds": {
			cues: []Cue{{Start: 2, End: 4, Text: "Good morning."}, {Start: 5, End: 9, Event: true, Text: "Dog"}},
			o:    Options{NoSounds: true}, want: []string{"2–4 Good morning."},
		},
		"a short word stays": {
			cues: []Cue{{Start: 10, End: 10.12, Speaker: "SPEAKER_0", Text: "Yes."}, {Start: 20, End: 21, Speaker: "SPEAKER_0", Text: "No."}},
			want: []string{"10–10.8 Yes.", "20–21 No."},
		},
		"a short word joins the next sentence": {
			cues: []Cue{{Start: 10, End: 10.12, Text: "Yes."}, {Start: 10.2, End: 12, Text: "I know."}},
			want: []string{"10–12 Yes. I know."},
		},
		"until it can be read": {
			cues: []Cue{{Start: 10, End: 11, Text: strings.Repeat("word ", 8)}, {Start: 20, End: 21, Text: strings.Repeat("word ", 8)}},
			o:    Options{MaxCPS: 13}, want: []string{"10–13 " + strings.Repeat("word ", 7) + "word", "20–23 " + strings.Repeat("word ", 7) + "word"},
		},
		"a fast sentence is halved": {
			cues: []Cue{{Start: 20, End: 21.5, Text: "This is a sentence that was spoken very fast by somebody in a hurry and nobody reads that."}},
			want: []string{"20–20.8 This is a sentence that/was spoken very fast by", "20.8–22.9 somebody in a hurry and nobody reads that."},
		},
		"one after the other": {
			cues: []Cue{{Start: 2, End: 4.2, Speaker: "A", Text: "Hello."}, {Start: 4, End: 6, Speaker: "B", Text: "Hi."}},
			want: []string{"2–4 [A] Hello.", "4–6 [B] Hi."},
		},
		"two at once": {
			cues: []Cue{{Start: 2, End: 4.2, Speaker: "A", Text: "Hello."}, {Start: 3, End: 6, Speaker: "B", Text: "Hi."}},
			want: []string{"2–6 [A] Hello.|[B] Hi."},
		},
		"three at once": {
			cues: []Cue{{Start: 2, End: 5, Speaker: "A", Text: "Hello."}, {Start: 2, End: 5, Speaker: "B", Text: "Hi."}, {Start: 2, End: 5, Speaker: "C", Text: "Ho."}},
			want: []string{"2–2.8 [A] Hello.|[B] Hi.", "2.8–5 [C] Ho."},
		},
		"a monologue": {
			cues: []Cue{{Start: 2, End: 4, Speaker: "SPEAKER_0", Text: "Hello."}, {Start: 4, End: 6, Speaker: "SPEAKER_0", Text: "I am."}},
			want: []string{"2–4 Hello.", "4–6 I am."},
		},
		"a monologue with its name": {
			cues: []Cue{{Start: 2, End: 4, Speaker: "Ann", Text: "Hello."}},
			want: []string{"2–4 [Ann] Hello."},
		},
		"a monologue with its number": {
			cues: []Cue{{Start: 2, End: 4, Speaker: "SPEAKER_0", Text: "Hello."}},
			o:    Options{LoneSpeaker: true}, want: []string{"2–4 [SPEAKER_0] Hello."},
		},
		"a page ends at a clause": {
			cues: []Cue{{Start: 0, End: 8, Text: "When the train had left the station, the people on the platform stood there for a while and went home."}},
			want: []string{"0–2.902 When the train had left the station,", "2.902–8 the people on the platform stood/there for a while and went home."},
		},
		"a line ends at a sentence": {
			cues: []Cue{{Start: 0, End: 3, Text: "Well, I think that's it. I think that's it."}},
			want: []string{"0–3 Well, I think that's it./I think that's it."},
		},
		"a page ends at a sentence": {
			cues: []Cue{{Start: 0, End: 8, Text: "We have been looking at a light here today, ma'am. Could I get your first and your last name for me?"}},
			want: []string{"0–4.08 We have been looking at a/light here today, ma'am.", "4.08–8 Could I get your first/and your last name for me?"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, shown(laid(t, c.cues, c.o)))
		})
	}
}

// TestSharedCuesAreWrittenWithDashes in both formats, with one voice span per
// speaker in WebVTT.
func TestSharedCuesAreWrittenWithDashes(t *testing.T) {
	cues := []Cue{{Start: 2, End: 4, Speaker: "A", Text: "Hello."}, {Start: 2, End: 4, Speaker: "B", Text: "Hi."}}
	var srt, vtt, bare bytes.Buffer
	require.NoError(t, SRT(&srt, cues, Options{}))
	require.NoError(t, VTT(&vtt, cues, Options{}))
	require.NoError(t, VTT(&bare, cues, Options{NoSpeakers: true}))
	assert.Equal(t, "1\n00:00:02,000 --> 00:00:04,000\n- [A] Hello.\n- [B] Hi.\n\n", srt.String())
	assert.Equal(t, "WEBVTT\n\n00:00:02.000 --> 00:00:04.000\n<v A>- Hello.</v>\n<v B>- Hi.</v>\n\n", vtt.String())
	assert.Equal(t, "WEBVTT\n\n00:00:02.000 --> 00:00:04.000\nHello. Hi.\n\n", bare.String())
}

// TestNoLineBeginsWithAClosingCharacter of UAX #14, for any start of the text,
// nor with punctuation that French separates by a space; and none ends inside a
// word of Korean, which has spaces.
func TestNoLineBeginsWithAClosingCharacter(t *testing.T) {
	for _, text := range []string{
		"それはきっとコンピューターのちょっとしたミスだったとおもいますけれどもデータセンターのエレベーターがスーパーコンピューターのサーバーをずっとまっていました",
		"今日は百％・九十℃の人々が東京々の店で２．５］を買ったと言っていましたが本当に百％・九十℃なのか人々は］知らないと思います百％だと思いますよ",
		"Dit -il : « ou » ? Et vous ; non ! « A » … 100 % « B » !", "안녕하세요 오늘은 날씨가 정말 좋네요 우리 같이 공원에 갈까요 아니면 집에서 그냥 책을 읽을까요",
	} {
		for shift := range 12 {
			for width := 8; width <= 42; width++ {
				for _, p := range layout([]Cue{{End: 6, Text: strings.Repeat("あ", shift) + text}}, Options{MaxColumns: width}, nameColumns) {
					for _, line := range p.voices[0].lines {
						first, _ := utf8.DecodeRuneInString(line)
						last, _ := utf8.DecodeLastRuneInString(line)
						assert.NotContains(t, "ー々・％℃．］。ゃゅょっャュョッァィゥェォ:»?;!…%", string(first), "%d columns: %s", width, line)
						assert.NotContains(t, "«하늘씨네우같공갈아집그읽", string(last), "%d columns: %s", width, line)
						assert.LessOrEqual(t, columns(line), width)
					}
				}
			}
		}
	}
}

// TestNoLineSplitsASyllable: in scripts without spaces, no line begins with a
// dependent vowel or a combining sign, and none ends with a leading vowel.
func TestNoLineSplitsASyllable(t *testing.T) {
	for script, text := range map[string]string{
		"Thai":    "ประเทศไทยเป็นประเทศที่มีความหลากหลายทางวัฒนธรรมและภาษาเราทุกคนต้องการน้ำและอาหารทุกๆวัน",
		"Lao":     "ປະເທດລາວເປັນປະເທດທີ່ມີຄວາມຫຼາກຫຼາຍທາງວັດທະນະທຳແລະພາສາພວກເຮົາທຸກຄົນຕ້ອງການນ້ຳ",
		"Khmer":   "ប្រទេសកម្ពុជាជាប្រទេសដែលមានវប្បធម៌និងភាសាផ្សេងៗគ្នាយើងទាំងអស់គ្នាត្រូវការទឹកនិងអាហារ",
		"Myanmar": "မြန်မာနိုင်ငံသည်ယဉ်ကျေးမှုနှင့်ဘာသာစကားမျိုးစုံရှိသောနိုင်ငံဖြစ်သည်ကျွန်ုပ်တို့အားလုံးရေနှင့်အစားအစာလိုအပ်သည်",
	} {
		for width := 8; width <= 42; width++ {
			for _, p := range layout([]Cue{{End: 6, Text: text}}, Options{MaxColumns: width}, nameColumns) {
				for _, line := range p.voices[0].lines {
					first, _ := utf8.DecodeRuneInString(line)
					last, _ := utf8.DecodeLastRuneInString(line)
					assert.False(t, unicode.In(first, unicode.M), "%s: %s", script, line)
					assert.NotContains(t, "ะาำๅๆະາຳຽໆៗ", string(first), "%s: %s", script, line)
					assert.NotContains(t, "เแโใไເແໂໃໄ", string(last), "%s: %s", script, line)
					assert.LessOrEqual(t, columns(line), width, "%s: %s", script, line)
				}
			}
		}
	}
	family := strings.Repeat("👨‍👩‍👧‍👦👍🏽", 20)
	for _, p := range layout([]Cue{{End: 6, Text: family}}, Options{}, nameColumns) {
		for _, line := range p.voices[0].lines {
			assert.Empty(t, strings.NewReplacer("👨‍👩‍👧‍👦", "", "👍🏽", "").Replace(line), "whole emoji")
		}
	}
}

// TestCuesAreShownLongEnough: a cue that is followed by a gap is shown for at
// least 0.8 s or until it has been read.
func TestCuesAreShownLongEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var cues []Cue
		now := 0.0
		for range rapid.IntRange(1, 8).Draw(t, "cues") {
			now += rapid.Float64Range(0, 5).Draw(t, "gap")
			c := Cue{Start: now, End: now + rapid.Float64Range(0, 6).Draw(t, "length"), Speaker: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "speaker")}
			n := rapid.IntRange(1, 40).Draw(t, "words")
			c.Text = strings.TrimSpace(strings.Repeat("word ", n))
			for i := range n {
				at := c.Start + (c.End-c.Start)*float64(i)/float64(n)
				c.Words = append(c.Words, spec.Word{Word: "word", Start: at, End: at})
			}
			c.Event = rapid.IntRange(0, 4).Draw(t, "event") == 0
			cues = append(cues, c)
		}
		pages := laid(t, cues, Options{})
		for i, p := range pages {
			need := max(shortest, float64(p.width())/20)
			if i+1 == len(pages) || pages[i+1].start-p.start >= need {
				require.GreaterOrEqual(t, p.end-p.start, need-1e-9)
			}
		}
	})
}
