//go:build long

package demo_test

import (
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A nameSet holds sentences with and without invented names, and the voices
// that speak them. training/asr/texts.py reserves these names for evaluation,
// and no model was trained on the voices. The two sets are disjoint.
type nameSet struct {
	seed uint64
	said []string
	// others are hotwords that are never spoken.
	others []string
	// frames are sentences with %s in place of a name.
	frames, plain []string
	voices        []voice
}

func (s *nameSet) hotwords() []string { return append(slices.Clone(s.said), s.others...) }

// voice is a synthesizer and one of its voices.
type voice struct{ program, name string }

// developmentNames is the set for choosing settings.
var developmentNames = nameSet{
	seed: 1,
	said: strings.Fields("Velmore Galric Laninwick Calinren Polelmont Salona Torinra Norimar Maraden Kiranden Halafield Quenostan Joregate " +
		"Valquist Weseldor Yarnick Peleden Dravadale Rosovra Falermore Lumistan Monovdan Tamamver Vinelgate Wesina Zanovdale Belimore " +
		"Corinver Daranick Elelmore Orodale Galton"),
	others: strings.Fields("Bosovley Kalovgate Malimar Perordale Dorerford Walstan Nedmar Garanvost Holinrell Jorinlo Lanilin Merinska " +
		"Branelska Ruvoden Selinley Taliley Ulorley Vininlo Wenamric Yarellin Zaninlo Corormore Dalerlin Elanwick Faliver Glenoren Haranvin " +
		"Kesammar Orelgate Toramley Marelna Lororden"),
	frames: []string{
		"I met %s at the station yesterday.", "%s is a very good teacher.", "The bus to %s is late again.", "Have you seen %s this morning?",
		"Please give the book to %s.", "We live near %s now.", "Where did %s buy the yellow coat?", "Next week %s will visit my uncle.",
		"The new boss is called %s.", "I write a letter to %s every month.", "%s would like a glass of water.", "My cousin comes from %s.",
		"It is cold and windy in %s.", "Good morning, %s, how are you?", "The car of %s is in the garage.", "Let us meet %s after lunch.",
	},
	plain: []string{
		"I met the engineer at the station yesterday.", "She is a very good teacher.", "The bus to the market is late again.",
		"Have you seen my umbrella this morning?", "Please give the book to the children.", "We live near the university now.",
		"Where did you buy the yellow coat?", "Next week we will visit my uncle.", "The new boss is very busy.", "I write a letter to my parents every month.",
		"He would like a glass of water.", "My cousin comes from Portugal.", "It is cold and windy in January.", "Good morning, how are you today?",
		"The car of the neighbor is in the garage.", "Let us meet at the bakery after lunch.", "I would like to pay by card, please.",
		"Turn left at the traffic light.", "The report is on the table in the office.", "How much are the tickets for tomorrow?",
		"Can you speak more slowly, please?", "I am looking for a pair of shoes.", "We need eggs, bread and milk.", "My grandmother plays the piano.",
		"The weather in Dublin is rainy.", "I have a pain in my shoulder.", "The shop closes at six in the evening.", "Do you want coffee or tea?",
		"The dog sleeps under the chair.", "It takes half an hour by taxi.", "Wednesday is not possible for me.", "Could you repeat the number?",
	},
	voices: []voice{
		{"espeak-ng", "en-us+klatt5"},
		{"festival", "kal_diphone"},
		{"espeak-ng", "en-us+RicishayMax2"},
		{"espeak-ng", "en-gb-x-rp+steph3"},
		{"RHVoice-test", "clb"},
		{"espeak-ng", "en-us+edward2"},
		{"espeak-ng", "en-gb+grandma"},
		{"espeak-ng", "en-us+AnxiousAndy"},
	},
}

// heldOutNames is only measured after all settings are fixed.
var heldOutNames = nameSet{
	seed: 2,
	said: strings.Fields("Bosanmar Kalinric Valestan Dorinmar Perelby Quenovric Waliford Belvost Yaramlin Noranska Rosefield Talamric Galorell " +
		"Ruvinver Dravelvin Salemont Ulinton Monara Elinley Tamiska Holedor Lumeland Zaninton Wenorra Vinovford Kesistan Torolin Merelden " +
		"Glenodale Poliwick Arormont Selerric"),
	others: strings.Fields("Branindor Joranver Deniren Velomore Aradale Moneric Garinley Hariford Lorovmont Feninmont Kirovdor Oravost Periton " +
		"Salovton Dalornick Goraric Marolin Nedelton Pelormore Ralindor Sananwick Talerton Ulstan Velovby Walamley Weniver Yareton Zanamland " +
		"Barorska Darovton Eloren Halostan"),
	frames: []string{
		"Is %s at the library this afternoon?", "%s works in the hospital near the park.", "The train to %s leaves at half past nine.",
		"I bought a new camera for %s.", "We are waiting for %s at the airport.", "Does %s speak French?", "My brother lives next to %s.",
		"%s has lost the key to the garden.", "The meeting with %s starts at ten o'clock.", "Tell %s that dinner is ready.",
		"How far is it to %s?", "I have never been to %s in winter.", "Thank you very much for your help, %s.",
		"The house of %s is behind the church.", "On Monday %s goes swimming with my sister.", "Can %s bring me the blue umbrella?",
	},
	plain: []string{
		"Is the manager at the library this afternoon?", "She works in the hospital near the park.", "The train to Berlin leaves at half past nine.",
		"I bought a new camera for my husband.", "We are waiting for the lawyer at the airport.", "Does your father speak French?",
		"My brother lives next to the museum.", "He has lost the key to the garden.", "The meeting with the boss starts at ten o'clock.",
		"Tell the children that dinner is ready.", "How far is it to the beach?", "I have never been to Canada in winter.",
		"Thank you very much for your help.", "The house of the writer is behind the church.", "On Monday he goes swimming with my sister.",
		"Can you bring me the blue umbrella?", "The soup is too hot for me.", "What time does the concert begin?", "I lost my phone on the bus.",
		"There are twenty days until Christmas.", "My favorite color is green.", "Please turn off the radio.", "The bill is sixty dollars.",
		"I am sorry, I am late again.", "The window in the kitchen is broken.", "Two tickets to Boston for Friday, please.",
		"It snowed all day on Sunday.", "Are you free next Thursday?", "My knee hurts when I play football.", "The bank opens at nine in the morning.",
		"We have no rice left in the kitchen.", "Would you like something to drink?",
	},
	voices: []voice{
		{"espeak-ng", "en-us+announcer"},
		{"flite", "rms"},
		{"espeak-ng", "en-gb+klatt4"},
		{"pico2wave", "en-GB"},
		{"espeak-ng", "en-us+m8"},
		{"espeak-ng", "en-gb-x-rp+grandpa"},
		{"espeak-ng", "en-us+Nguyen"},
		{"espeak-ng", "en-us+klatt6"},
	},
}

// clip is a recording and its text.
type clip struct{ path, text string }

// record speaks every name twice, and every plain sentence in two voices; it
// skips the test if a synthesizer is missing.
func (s *nameSet) record(t *testing.T, dir string) (named, plain []clip) {
	for _, v := range s.voices {
		if _, err := exec.LookPath(v.program); err != nil {
			t.Skip(err)
		}
	}
	r := rand.New(rand.NewPCG(s.seed, 0))
	say := func(kind string, i int, text string) clip {
		path := filepath.Join(dir, fmt.Sprintf("%s%d.wav", kind, i))
		s.voices[(i+i/32)%len(s.voices)].say(t, text, path, r)
		return clip{path, text}
	}
	for i := range 2 * len(s.said) {
		name := s.said[i%len(s.said)]
		frame := s.frames[(i+3*(i/len(s.said)))%len(s.frames)]
		named = append(named, say("named", i, strings.ReplaceAll(frame, "%s", name)))
	}
	for i := range 2 * len(s.plain) {
		plain = append(plain, say("plain", i, s.plain[i%len(s.plain)]))
	}
	return named, plain
}

// say writes speech as a WAV file.
func (v voice) say(t *testing.T, text, path string, r *rand.Rand) {
	speed, pitch := strconv.Itoa(135+r.IntN(35)), strconv.Itoa(40+r.IntN(20))
	var args []string
	input := text
	switch v.program {
	case "espeak-ng":
		args = []string{"-v", v.name, "-s", speed, "-p", pitch, "-w", path, text}
	case "flite":
		args = []string{"-voice", v.name, "-t", text, "-o", path}
	case "pico2wave":
		args = []string{"-l", v.name, "-w", path, text}
	case "RHVoice-test":
		args = []string{"-p", v.name, "-o", path}
	case "festival":
		args, input = []string{"--pipe"}, fmt.Sprintf(`(voice_%s) (utt.save.wave (utt.synth (Utterance Text %q)) %q (quote riff))`, v.name, text, path)
	default:
		t.Fatalf("synthesizer %q", v.program)
	}
	cmd := exec.Command(v.program, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v: %s", cmd, out)
	require.FileExists(t, path, "%v: %s", cmd, out)
}

// TestNameSets: the sets share neither names nor sentences nor voices, and no
// model is trained on their names.
func TestNameSets(t *testing.T) {
	seen := map[any]bool{}
	once := func(x any) {
		assert.False(t, seen[x], x)
		seen[x] = true
	}
	for _, s := range []nameSet{developmentNames, heldOutNames} {
		assert.Len(t, s.said, 32)
		assert.Len(t, s.others, 32)
		for _, name := range s.hotwords() {
			once(name)
			sum := md5.Sum([]byte(name))
			n, err := strconv.ParseUint(fmt.Sprintf("%x", sum[:4]), 16, 64)
			require.NoError(t, err)
			assert.Zero(t, n%20, "%s may be trained on", name)
		}
		for _, sentence := range append(slices.Clone(s.frames), s.plain...) {
			once(sentence)
		}
		for _, v := range s.voices {
			once(v)
		}
	}
}
