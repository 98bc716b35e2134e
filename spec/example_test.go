package spec_test

import (
	"fmt"

	"github.com/otograph/otograph/spec"
)

// The table describes the allowed values of each option, for flags, forms and
// documents.
func ExampleTable() {
	for _, o := range spec.Table() {
		if o.Name == "asr_beam_size" {
			fmt.Println(o.Name, o.Default, *o.Min, *o.Max)
		}
	}
	// Output: asr_beam_size 5 1 20
}

// Languages can be written in many ways.
func ExampleNormalizeLanguage() {
	for _, s := range []string{"English", "pt-BR", "deu", "klingon"} {
		code, ok := spec.NormalizeLanguage(s)
		fmt.Println(code, ok)
	}
	// Output:
	// en true
	// pt true
	// de true
	//  false
}

// The tier depends on the options, the language and the models.
func ExampleRoute() {
	have := spec.Available{Standard: true, Optimized: []string{"en"}}
	fmt.Println(spec.Route("en", spec.Options{}, have))
	fmt.Println(spec.Route("de", spec.Options{}, have))
	// Output:
	// optimized
	// standard
}

func ExampleNearestEventClass() {
	fmt.Println(spec.NearestEventClass("Telefone"))
	// Output: Telephone
}
