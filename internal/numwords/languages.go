package numwords

import "strings"

var english = language{
	digits: strings.Fields("zero one two three four five six seven eight nine"), space: " ",
	point: []string{"point"}, decimal: '.', hour: "o'clock", cents: []string{"", "and"},
	cardinal: func(n int) []string { return []string{enNumber(n, ""), enNumber(n, "and ")} },
	year: func(n int) []string {
		high, low := enNumber(n/100, ""), n%100
		switch {
		case n >= 2000 && n < 2010:
			return nil
		case low == 0:
			return []string{high + " hundred"}
		case low < 10:
			return []string{high + " oh " + enNumber(low, "")}
		}
		return []string{high + " " + enNumber(low, "")}
	},
	signs: map[string][]string{
		"%": {"percent"}, "€": {"euros", "euro"}, "$": {"dollars", "dollar"}, "£": {"pounds", "pound"},
		"km": {"kilometers"}, "kg": {"kilos", "kilograms"},
		"am": {"a m"}, "pm": {"p m"},
	},
}

var (
	enSmall = strings.Fields("zero one two three four five six seven eight nine " +
		"ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	enTens = strings.Fields("twenty thirty forty fifty sixty seventy eighty ninety")
)

// enNumber spells a number; and is the word before the part below a hundred.
func enNumber(n int, and string) string {
	switch {
	case n < 20:
		return enSmall[n]
	case n < 100:
		return enTens[n/10-2] + rest(n%10, " ", func(n int) string { return enSmall[n] })
	case n < 1000:
		return enSmall[n/100] + " hundred" + rest(n%100, " "+and, func(n int) string { return enNumber(n, and) })
	}
	unit, name := scale(n, "thousand", "million", "billion")
	joint := " "
	if n%unit < 100 {
		joint += and
	}
	return enNumber(n/unit, and) + " " + name + rest(n%unit, joint, func(n int) string { return enNumber(n, and) })
}

// rest returns the smaller part of a number after joint, "" for 0.
func rest(n int, joint string, read func(n int) string) string {
	if n == 0 {
		return ""
	}
	return joint + read(n)
}

// scale returns the largest of thousand, million and billion in n, and its name.
func scale(n int, thousand, million, billion string) (unit int, name string) {
	switch {
	case n >= 1_000_000_000:
		return 1_000_000_000, billion
	case n >= 1_000_000:
		return 1_000_000, million
	}
	return 1000, thousand
}

var german = language{
	digits: strings.Fields("null eins zwei drei vier fünf sechs sieben acht neun"), space: " ",
	point: []string{"komma"}, decimal: ',', clock: "uhr", hour: "uhr", cents: []string{"", "und"},
	cardinal: func(n int) []string {
		long := deNumber(n, "ein", true)
		return []string{deNumber(n, "", true), long}
	},
	year: func(n int) []string {
		if n >= 2000 {
			return nil
		}
		low := rest(n%100, "", func(n int) string { return deNumber(n, "", true) })
		return []string{deNumber(n/100, "", true) + "hundert" + low}
	},
	signs: map[string][]string{
		"%": {"prozent"}, "€": {"euro"}, "$": {"dollar"}, "£": {"pfund"},
		"km": {"kilometer"}, "kg": {"kilo", "kilogramm"},
	},
}

var (
	deSmall = strings.Fields("null ein zwei drei vier fünf sechs sieben acht neun " +
		"zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn")
	deTens = strings.Fields("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")
)

// deNumber spells a number; one is the word before a single hundred or
// thousand, and at the end of a number 1 is "eins".
func deNumber(n int, one string, end bool) string {
	switch {
	case n == 1 && end:
		return "eins"
	case n < 20:
		return deSmall[n]
	case n < 100:
		if n%10 == 0 {
			return deTens[n/10-2]
		}
		return deSmall[n%10] + "und" + deTens[n/10-2]
	case n < 1000, n < 1_000_000:
		unit, name := 100, "hundert"
		if n >= 1000 {
			unit, name = 1000, "tausend"
		}
		count := one
		if n/unit > 1 {
			count = deNumber(n/unit, one, false)
		}
		return count + name + rest(n%unit, "", func(n int) string { return deNumber(n, one, end) })
	}
	unit, name := scale(n, "", "millionen", "milliarden")
	count := deNumber(n/unit, one, false)
	if n/unit == 1 {
		count, name = "eine", strings.TrimSuffix(strings.TrimSuffix(name, "n"), "e")
		if unit > 1_000_000 {
			name = "milliarde"
		}
	}
	return count + " " + name + rest(n%unit, " ", func(n int) string { return deNumber(n, one, end) })
}

var spanish = language{
	digits: strings.Fields("cero uno dos tres cuatro cinco seis siete ocho nueve"), space: " ",
	point: []string{"coma", "punto", "con"}, decimal: ',', clock: "y", hour: "en punto", cents: []string{"con", "y", ""},
	cardinal: func(n int) []string {
		female := strings.NewReplacer("cientos", "cientas", "quinientos", "quinientas").Replace(feminine(esNumber(n)))
		return []string{esNumber(n), shortOne(esNumber(n)), female}
	},
	signs: map[string][]string{
		"%": {"por ciento"}, "€": {"euros", "euro"}, "$": {"dólares"}, "£": {"libras"},
		"km": {"kilómetros"}, "kg": {"kilos"},
	},
}

var esSmall = strings.Fields("cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince " +
	"dieciséis diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve")

var (
	esTens     = strings.Fields("treinta cuarenta cincuenta sesenta setenta ochenta noventa")
	esHundreds = strings.Fields("ciento doscientos trescientos cuatrocientos " +
		"quinientos seiscientos setecientos ochocientos novecientos")
)

func esNumber(n int) string {
	switch {
	case n < 30:
		return esSmall[n]
	case n < 100:
		return esTens[n/10-3] + rest(n%10, " y ", esNumber)
	case n == 100:
		return "cien"
	case n < 1000:
		return esHundreds[n/100-1] + rest(n%100, " ", esNumber)
	case n < 1_000_000:
		count := ""
		if n >= 2000 {
			count = shortOne(esNumber(n/1000)) + " "
		}
		return count + "mil" + rest(n%1000, " ", esNumber)
	}
	name := " millones"
	if n/1_000_000 == 1 {
		name = " millón"
	}
	return shortOne(esNumber(n/1_000_000)) + name + rest(n%1_000_000, " ", esNumber)
}

// shortOne returns the form of a number before its noun: veintiún libros.
func shortOne(s string) string {
	switch {
	case strings.HasSuffix(s, "veintiuno"):
		return strings.TrimSuffix(s, "uno") + "ún"
	case strings.HasSuffix(s, "uno"):
		return strings.TrimSuffix(s, "o")
	}
	return s
}

// feminine returns the form of a number before a feminine noun: una, veintiuna.
func feminine(s string) string {
	if strings.HasSuffix(s, "uno") {
		return strings.TrimSuffix(s, "o") + "a"
	}
	return s
}

var french = language{
	digits: strings.Fields("zéro un deux trois quatre cinq six sept huit neuf"), space: " ",
	point: []string{"virgule"}, decimal: ',', clock: "heures", hour: "heures", cents: []string{"", "et"},
	cardinal: func(n int) []string { return []string{frNumber(n), feminineFrench(frNumber(n))} },
	year: func(n int) []string {
		if n >= 2000 {
			return nil
		}
		return []string{frNumber(n/100) + " cent" + rest(n%100, " ", frNumber)}
	},
	signs: map[string][]string{
		"%": {"pour cent"}, "€": {"euros", "euro"}, "$": {"dollars"}, "£": {"livres"},
		"km": {"kilomètres"}, "kg": {"kilos"}, "h": {"heures", "heure"},
	},
}

var (
	frSmall = strings.Fields("zéro un deux trois quatre cinq six sept huit neuf " +
		"dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf")
	frTens = strings.Fields("vingt trente quarante cinquante soixante") //nolint:misspell // French
)

func frNumber(n int) string {
	switch {
	case n < 20:
		return frSmall[n]
	case n < 70:
		if n%10 == 1 {
			return frTens[n/10-2] + " et un"
		}
		return frTens[n/10-2] + rest(n%10, "-", frNumber)
	case n == 71:
		return "soixante et onze"
	case n < 80:
		return "soixante-" + frNumber(n-60)
	case n == 80:
		return "quatre-vingts"
	case n < 100:
		return "quatre-vingt-" + frNumber(n-80)
	case n < 1000:
		switch {
		case n < 200:
			return "cent" + rest(n%100, " ", frNumber)
		case n%100 == 0:
			return frNumber(n/100) + " cents"
		}
		return frNumber(n/100) + " cent " + frNumber(n%100)
	case n < 1_000_000:
		count := ""
		if n >= 2000 {
			count = beforeThousand(frNumber(n/1000)) + " "
		}
		return count + "mille" + rest(n%1000, " ", frNumber)
	}
	unit, name := scale(n, "", "millions", "milliards")
	if n/unit == 1 {
		name = strings.TrimSuffix(name, "s")
	}
	return frNumber(n/unit) + " " + name + rest(n%unit, " ", frNumber)
}

// beforeThousand removes the plural of hundreds and eighties at the end.
func beforeThousand(s string) string {
	if strings.HasSuffix(s, "cents") || strings.HasSuffix(s, "vingts") {
		return strings.TrimSuffix(s, "s")
	}
	return s
}

// feminineFrench returns the form of a number before a feminine noun: une,
// vingt et une.
func feminineFrench(s string) string {
	if s == "un" || strings.HasSuffix(s, " un") || strings.HasSuffix(s, "-un") {
		return s + "e"
	}
	return s
}

var portuguese = language{
	digits: strings.Fields("zero um dois três quatro cinco seis sete oito nove"), space: " ",
	point: []string{"vírgula", "ponto"}, decimal: ',', clock: "e", hour: "horas", cents: []string{"e", ""},
	cardinal: func(n int) []string {
		s := ptNumber(n)
		female := strings.NewReplacer("entos", "entas", "zentos", "zentas").Replace(s)
		for _, pair := range [][2]string{{"um", "uma"}, {"dois", "duas"}} {
			if female == pair[0] || strings.HasSuffix(female, " "+pair[0]) {
				female = strings.TrimSuffix(female, pair[0]) + pair[1]
			}
		}
		return []string{s, female}
	},
	signs: map[string][]string{
		"%": {"por cento"}, "€": {"euros", "euro"}, "$": {"dólares"}, "£": {"libras"},
		"km": {"quilômetros", "quilómetros"}, "kg": {"quilos"},
	},
}

var (
	ptSmall = strings.Fields("zero um dois três quatro cinco seis sete oito nove " +
		"dez onze doze treze catorze quinze dezesseis dezessete dezoito dezenove")
	ptTens     = strings.Fields("vinte trinta quarenta cinquenta sessenta setenta oitenta noventa")
	ptHundreds = strings.Fields("cento duzentos trezentos quatrocentos " +
		"quinhentos seiscentos setecentos oitocentos novecentos")
)

func ptNumber(n int) string {
	switch {
	case n < 20:
		return ptSmall[n]
	case n < 100:
		return ptTens[n/10-2] + rest(n%10, " e ", ptNumber)
	case n == 100:
		return "cem"
	case n < 1000:
		return ptHundreds[n/100-1] + rest(n%100, " e ", ptNumber)
	case n < 1_000_000:
		count := ""
		if n >= 2000 {
			count = ptNumber(n/1000) + " "
		}
		return count + "mil" + rest(n%1000, ptJoint(n%1000), ptNumber)
	}
	unit, name := scale(n, "", "milhões", "bilhões")
	if n/unit == 1 {
		name = strings.TrimSuffix(name, "ões") + "ão"
	}
	return ptNumber(n/unit) + " " + name + rest(n%unit, ptJoint(n%unit), ptNumber)
}

// ptJoint returns the joint between the thousands and the number n below them.
func ptJoint(n int) string {
	if n < 100 || n%100 == 0 {
		return " e "
	}
	return " "
}

var zhDigits = []string{"零", "一", "二", "三", "四", "五", "六", "七", "八", "九"}

var chinese = language{
	digits: zhDigits,
	point:  []string{"点"}, decimal: '.', clock: "点", hour: "点",
	cardinal: func(n int) []string {
		s := zhNumber(n)
		pairs := strings.NewReplacer("二千", "两千", "二万", "两万", "二亿", "两亿", "二百", "两百")
		out := []string{s, pairs.Replace(s)}
		if n == 2 {
			out = append(out, "两")
		}
		return out
	},
	signs: map[string][]string{
		"€": {"欧元"}, "$": {"美元", "块"}, "£": {"英镑"}, "¥": {"元", "块"},
		"年": {"年"}, "月": {"月"}, "日": {"日"}, "号": {"号"},
		"点": {"点"}, "岁": {"岁"},
	},
}

func zhNumber(n int) string {
	if n < 10 {
		return zhDigits[n]
	}
	for _, u := range []struct {
		unit int
		name string
	}{{100_000_000, "亿"}, {10_000, "万"}, {1000, "千"}, {100, "百"}, {10, "十"}} {
		if n < u.unit {
			continue
		}
		head := zhNumber(n/u.unit) + u.name
		if n < 20 {
			head = u.name
		}
		low := n % u.unit
		if low == 0 {
			return head
		}
		if low < u.unit/10 {
			head += "零"
		}
		return head + zhWithOne(low)
	}
	return ""
}

// zhWithOne returns the form of a number inside of a larger one, in which ten
// is 一十.
func zhWithOne(n int) string {
	if n >= 10 && n < 20 {
		return "一" + zhNumber(n)
	}
	return zhNumber(n)
}
