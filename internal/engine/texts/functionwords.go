package texts

import (
	"strings"
	"sync"
	"unicode"
)

// functionWords are words that occur in most sentences of a language and are
// not common words of the other languages here.
var functionWords = map[string]string{
	"en": `the and is are were been you he she it we they my your his our their this that these those what where when who which
		how why there not of to for with from by would could should must have had has does did please then than because about
		let's i'm it's don't`,
	"de": `das und ist sind ich wir ihr nicht kein keine ein eine einen einem einer zu mit auf für von den dem wie wann warum auch
		noch nur sehr mein meine dein deine hat haben habe wird werden kann können muss möchte bitte zum zur aus bei nach über
		oder aber wenn dass sich war der`,
	"fr": `les est je elle nous vous ils elles ce cette ces mon ses notre votre pas ne une et dans pour avec qui quoi où quand
		comment pourquoi avez avoir suis êtes c'est j'ai aux mais très peux peut veux voudrais être fait faire sont leur
		d'un d'une qu'il n'est l'on`,
	"es": `el las son yo tú él ella nosotros usted ustedes ellos mis este esta estos del al lo qué dónde cuándo cómo quién muy
		pero hay tengo tiene está están estoy quiero puede puedo más hacer fue sí ya le porque y unos unas con por los`,
	"pt": `é são eu você ele ela vocês meu minha meus minhas seu sua seus suas isto isso uma umas das nas ao à não com sem
		tem tenho estão quero pode posso mais muito fazer foi sim já lhe em onde quando quem pelo pela do um`,
}

// words returns the lists as sets, without words that two languages share.
var words = sync.OnceValue(func() map[string]map[string]bool {
	seen := map[string]int{}
	for _, list := range functionWords {
		for _, w := range strings.Fields(list) {
			seen[w]++
		}
	}
	sets := map[string]map[string]bool{}
	for language, list := range functionWords {
		sets[language] = map[string]bool{}
		for _, w := range strings.Fields(list) {
			if seen[w] == 1 {
				sets[language][w] = true
			}
		}
	}
	return sets
})

// count returns the number of a language's function words in a text.
func count(text, language string) (n int) {
	set := words()[language]
	border := func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }
	for _, w := range strings.FieldsFunc(strings.ToLower(text), border) {
		if set[strings.ReplaceAll(w, "’", "'")] {
			n++
		}
	}
	return n
}
