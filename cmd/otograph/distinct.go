package main

import (
	"fmt"
	"os"
)

// checkDistinct returns an error if an output is one of the inputs, also
// through a link, before anything runs. "-" is standard input, and "" no file.
func checkDistinct(outputs, inputs []string) error {
	type input struct {
		name string
		info os.FileInfo
	}
	var read []input
	for _, name := range inputs {
		info, err := os.Stat(name)
		if name == "-" {
			info, err = os.Stdin.Stat()
		}
		if err == nil && info.Mode().IsRegular() {
			read = append(read, input{name, info})
		}
	}
	for _, out := range outputs {
		info, err := os.Stat(out)
		if err != nil {
			continue // a new file
		}
		for _, in := range read {
			if os.SameFile(info, in.info) {
				return &usageError{fmt.Errorf("the output %s is the input %s: expected another file, because the output would replace it", out, in.name)}
			}
		}
	}
	return nil
}
