// Package spec defines the vocabulary of Otograph: the options of a run with
// the only table of their allowed values, the tiers and the rule that selects
// one, the stages, the progress, the result, the languages and the sound
// classes.
//
// It is a leaf. It imports only the standard library, starts no goroutine and
// calls no native code, so that a client, a gateway or a test can use the
// service's types without its engines. Package otograph has the same types
// under the same names.
package spec
