package texts

import "strings"

var english = language{
	cardinal: func(n int) []string {
		s := enNumbers.spell(n)
		return []string{strings.ReplaceAll(s, " and ", " "), s}
	},
	year: func(n int) []string {
		high, low := enNumbers.spell(n/100), n%100
		switch {
		case n >= 2000 && n < 2010:
			return nil
		case low == 0:
			return []string{high + " hundred"}
		case low < 10:
			high += " oh"
		}
		return []string{high + " " + enNumbers.spell(low)}
	},
	space: " ", point: []string{"point"}, decimal: '.', hour: "o'clock", cents: []string{"", "and"},
	signs: map[string][]string{
		"%": {"percent"}, "€": {"euros", "euro"}, "$": {"dollars", "dollar"}, "£": {"pounds", "pound"},
		"km": {"kilometers"}, "kg": {"kilos", "kilograms"},
		"am": {"a m"}, "pm": {"p m"},
	},
}

var enNumbers = newSpeller(`zero one two three four five six seven eight nine
	ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen`,
	`20 twenty[ >], 30 thirty[ >], 40 forty[ >], 50 fifty[ >], 60 sixty[ >], 70 seventy[ >], 80 eighty[ >], 90 ninety[ >],
	100 < hundred[ and >], 1000 < thousand[~>], 1000000 < million[~>], 1000000000 < billion[~>]`,
	func(rest, _ int) string {
		if rest < 100 {
			return " and "
		}
		return " "
	})

var german = language{
	cardinal: func(n int) []string { return []string{deOne(deNumbers.spell(n), n), deOne(deLong.spell(n), n)} },
	year: func(n int) []string {
		if n >= 2000 {
			return nil
		}
		return []string{deOne(deNumbers.apply(rule{unit: 100, text: "<hundert[>]"}, n), n)}
	},
	space: " ", point: []string{"komma"}, decimal: ',', clock: "uhr", hour: "uhr", cents: []string{"", "und"},
	signs: map[string][]string{
		"%": {"prozent"}, "€": {"euro"}, "$": {"dollar"}, "£": {"pfund"},
		"km": {"kilometer"}, "kg": {"kilo", "kilogramm"},
	},
}

const (
	deSmall = `null ein zwei drei vier fünf sechs sieben acht neun
		zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn`
	deTens = `20 [>und]zwanzig, 30 [>und]dreißig, 40 [>und]vierzig, 50 [>und]fünfzig,
		60 [>und]sechzig, 70 [>und]siebzig, 80 [>und]achtzig, 90 [>und]neunzig, `
	deMillions = `1000000 eine million[ >], 2000000 < millionen[ >], 1000000000 eine milliarde[ >], 2000000000 < milliarden[ >]`
)

var (
	deNumbers = newSpeller(deSmall, deTens+"100 hundert[>], 200 <hundert[>], 1000 tausend[>], 2000 <tausend[>], "+deMillions, nil)
	deLong    = newSpeller(deSmall, deTens+"100 <hundert[>], 1000 <tausend[>], "+deMillions, nil) // einhundert
)

// deOne writes "eins" at the end of a number.
func deOne(s string, n int) string {
	if n%100 == 1 {
		s += "s"
	}
	return s
}

var spanish = language{
	cardinal: func(n int) []string {
		s := esNumbers.spell(n)
		s = strings.NewReplacer("veintiuno mil", "veintiún mil", "uno mil", "un mil").Replace(s) // mil and millones
		short, female := s, s
		if stem, ok := strings.CutSuffix(s, "uno"); ok {
			short, female = stem+"un", stem+"una"
			if strings.HasSuffix(stem, "veinti") {
				short = stem + "ún"
			}
		}
		return []string{s, short, strings.NewReplacer("cientos", "cientas", "quinientos", "quinientas").Replace(female)}
	},
	space: " ", point: []string{"coma", "punto", "con"}, decimal: ',', clock: "y", hour: "en punto", cents: []string{"con", "y", ""},
	signs: map[string][]string{
		"%": {"por ciento"}, "€": {"euros", "euro"}, "$": {"dólares"}, "£": {"libras"},
		"km": {"kilómetros"}, "kg": {"kilos"},
	},
}

var esNumbers = newSpeller(`cero uno dos tres cuatro cinco seis siete ocho nueve
	diez once doce trece catorce quince dieciséis diecisiete dieciocho diecinueve
	veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve`,
	`30 treinta[ y >], 40 cuarenta[ y >], 50 cincuenta[ y >], 60 sesenta[ y >], 70 setenta[ y >], 80 ochenta[ y >], 90 noventa[ y >],
	100 cien[to >], 200 doscientos[ >], 300 trescientos[ >], 400 cuatrocientos[ >], 500 quinientos[ >],
	600 seiscientos[ >], 700 setecientos[ >], 800 ochocientos[ >], 900 novecientos[ >],
	1000 mil[ >], 2000 < mil[ >], 1000000 un millón[ >], 2000000 < millones[ >]`, nil)

var french = language{
	cardinal: func(n int) []string {
		s := frNumber(n)
		if s == "un" || strings.HasSuffix(s, " un") || strings.HasSuffix(s, "-un") {
			return []string{s, s + "e"}
		}
		return []string{s}
	},
	year: func(n int) []string {
		if n >= 2000 {
			return nil
		}
		return []string{frFix.Replace(frNumbers.apply(rule{unit: 100, text: "< cent[ >]"}, n))}
	},
	space: " ", point: []string{"virgule"}, decimal: ',', clock: "heures", hour: "heures", cents: []string{"", "et"},
	signs: map[string][]string{
		"%": {"pour cent"}, "€": {"euros", "euro"}, "$": {"dollars"}, "£": {"livres"},
		"km": {"kilomètres"}, "kg": {"kilos"}, "h": {"heures", "heure"},
	},
}

//nolint:misspell // French
var frNumbers = newSpeller(`zéro un deux trois quatre cinq six sept huit neuf
	dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf`,
	`20 vingt[->], 30 trente[->], 40 quarante[->], 50 cinquante[->], 60/20 soixante[->], 80/20 quatre-vingt[->|s],
	100 cent[ >], 200 < cent[ >|s], 1000 mille[ >], 2000 < mille[ >],
	1000000 un million[ >], 2000000 < millions[ >], 1000000000 un milliard[ >], 2000000000 < milliards[ >]`, nil)

// frFix writes vingt et un, but quatre-vingt-un, and no plural before mille.
var frFix = strings.NewReplacer("quatre-vingt-un", "quatre-vingt-un", "vingt-un", "vingt et un", "nte-un", "nte et un", "nte-onze", "nte et onze",
	"cents mille", "cent mille", "vingts mille", "vingt mille")

func frNumber(n int) string { return frFix.Replace(frNumbers.spell(n)) }

var portuguese = language{
	cardinal: func(n int) []string {
		s := ptNumbers.spell(n)
		female := strings.ReplaceAll(s, "entos", "entas")
		for _, pair := range [][2]string{{"um", "uma"}, {"dois", "duas"}} {
			if female == pair[0] || strings.HasSuffix(female, " "+pair[0]) {
				female = strings.TrimSuffix(female, pair[0]) + pair[1]
			}
		}
		return []string{s, female}
	},
	space: " ", point: []string{"vírgula", "ponto"}, decimal: ',', clock: "e", hour: "horas", cents: []string{"e", ""},
	signs: map[string][]string{
		"%": {"por cento"}, "€": {"euros", "euro"}, "$": {"dólares"}, "£": {"libras"},
		"km": {"quilômetros", "quilómetros"}, "kg": {"quilos"},
	},
}

var ptNumbers = newSpeller(`zero um dois três quatro cinco seis sete oito nove
	dez onze doze treze catorze quinze dezesseis dezessete dezoito dezenove`,
	`20 vinte[ e >], 30 trinta[ e >], 40 quarenta[ e >], 50 cinquenta[ e >], 60 sessenta[ e >], 70 setenta[ e >], 80 oitenta[ e >], 90 noventa[ e >],
	100 ce[nto e >|m], 200 duzentos[ e >], 300 trezentos[ e >], 400 quatrocentos[ e >], 500 quinhentos[ e >],
	600 seiscentos[ e >], 700 setecentos[ e >], 800 oitocentos[ e >], 900 novecentos[ e >], 1000 mil[~>], 2000 < mil[~>],
	1000000 um milhão[~>], 2000000 < milhões[~>], 1000000000 um bilhão[~>], 2000000000 < bilhões[~>]`,
	func(rest, _ int) string {
		if rest < 100 || rest%100 == 0 {
			return " e "
		}
		return " "
	})

var chinese = language{
	cardinal: func(n int) []string {
		s := zhNumbers.spell(n)
		pairs := strings.NewReplacer("二千", "两千", "二万", "两万", "二亿", "两亿", "二百", "两百")
		out := []string{s, pairs.Replace(s)}
		if n == 2 {
			out = append(out, "两")
		}
		return out
	},
	point: []string{"点"}, decimal: '.', clock: "点", hour: "点",
	signs: map[string][]string{
		"€": {"欧元"}, "$": {"美元", "块"}, "£": {"英镑"}, "¥": {"元", "块"},
		"年": {"年"}, "月": {"月"}, "日": {"日"}, "号": {"号"},
		"点": {"点"}, "岁": {"岁"},
	},
}

var zhNumbers = newSpeller("零 一 二 三 四 五 六 七 八 九", "10 十[>], 20 <十[>], 100 <百[~>], 1000 <千[~>], 10000 <万[~>], 100000000 <亿[~>]",
	func(rest, unit int) (joint string) {
		if rest < unit/10 {
			joint = "零"
		}
		if rest >= 10 && rest < 20 { // 一十 within a number
			joint += "一"
		}
		return joint
	})
