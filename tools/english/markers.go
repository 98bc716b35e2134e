package main

import "regexp"

// marker is a phrase to avoid and its replacement.
type marker struct {
	name    string
	pattern *regexp.Regexp
}

// found is a place where a marker matches.
type found struct{ marker, text string }

// markers are phrases that native technical writers do not use, with their
// replacements.
var markers = []marker{
	mark(`"reports whether", "returns"`, `\btells? (whether|if|how|what|which|where)\b`),
	mark(`"returns", "creates"`, `^[A-Za-z]\w* (tells|gives|makes an?|makes of|says|is the answer of|is what is|is what a)\b`),
	mark(`subject, verb, object`, `(^|[.:] )Of (?:more|these|those|which|them|several|many|two|all)\b[^.]*,`),
	mark(`a noun as the subject`, `(^|[.] )(What|Whatever|Whoever) [^?.]*\b(is|are|was|were|has|have|must|may|can)\b[^?]*[.]`),
	mark(`a noun as the subject`, `(^|[.] )Those (who|that|which|of)\b`),
	mark(`"is not", "there is no"`, `(^|[^e]|[^r]e|[^e]re|[^h]ere) (is|are|was|were) no [a-z]+ (of|for|to|here|there|that|which)\b`),
	mark(`"is not an error"`, `\b(is|are) no (error|matter|fault|longer one|business|reason)\b`),
	mark(`a number, or "many"`, `\bso many\b|\bas many as\b|\bso much\b`),
	mark(`"because there is no"`, `\bfor want of\b|\bfor lack of\b`),
	mark(`"next to"`, `\b(lies?|stands?|sits?|goes) (beside|there|apart|behind)\b`),
	mark(`"is in", "is stored in"`, `\bstands? (in|on|for itself|with|at|under)\b`),
	mark(`"after a"`, `\bbehind (a|the|an|its|it|them|that)\b`),
	mark(`"its", "separate"`, `\bof (its|their|his|her|our|one's|your|my) own\b`),
	mark(`"simultaneously", "immediately"`, `\bat once\b`),
	mark(`"if", "where"`, `\b(so|in) far as\b|\bas far as ([^p]|p[^o])`),
	mark(`"should", "the person who"`, `\b(who|which|that|what) (is|are) to\b|\b(is|are) not to be\b|\b(is|are) to be \w+ed\b`),
	mark(`"if no"`, `\b(that|where) there (is|are) none\b`),
	mark(`"closes", "continues", "starts"`, `\blets? [^.,;]{0,20}\bgo\b|\bgoes on\b|\bgo on\b|\bbegins? anew\b|\b(comes?|came) to (its|their) end\b`),
	mark(`the person or program`, `\b(nobody|somebody|whoever|nothing but|everybody)\b`),
	mark(`"also"`, `, too\b[,.;]?|\bbeside (it|them|that|this|these|each|one)\b`),
	mark(`three sentences`, `[^.;]*;[^.;]*;[^.;]*;`),
	mark(`American spelling`, `\b(recognis|normalis|synthesis(e|i)|optimis|initialis|organis(e|i)|quantis|internationalis|analyse[sd]?\b|colour|neighbour|behaviour|honour|favour|cancell(ed|ing)|centred?\b|grey\b|licences\b|catalogue)`),
	mark(`the field's word`, `\b(wish|wishes|trouble of|makes nothing of|takes? note|in the house|from when on|a place of|given up|gives up)\b`),
}

func mark(name, pattern string) marker {
	return marker{name, regexp.MustCompile(`(?i:` + pattern + `)`)}
}

// markersIn returns the matches in text, one per marker.
func markersIn(text string) []found {
	var all []found
	for _, m := range markers {
		if s := m.pattern.FindString(text); s != "" {
			all = append(all, found{m.name, s})
		}
	}
	return all
}
