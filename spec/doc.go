// Package spec is the vocabulary of Otograph: the options of a run with the
// one table of what each may be, the tiers and the rule that picks one, the
// stages, the progress, the result, the languages and the classes of sound.
//
// It is a leaf. It imports the standard library alone, starts no goroutine and
// calls no native code, so that a client, a gateway or a test can speak the
// service's language without its engines. Package otograph has the same types
// under the same names.
package spec
