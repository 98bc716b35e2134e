package onnx

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// unspoken matches Moonshine's spare tokens, which have no text.
var unspoken = regexp.MustCompile(`^<<ST_\d+>>$`)

func moonshineSymbols(f sideFile) ([]string, error) {
	read := tokenizerBin
	if len(f.Data) > 0 && f.Data[0] == '{' {
		read = tokenizerJSON
	}
	fail := func(err error) ([]string, error) {
		return nil, fmt.Errorf("%s: %w: expected Moonshine's tokenizer.bin or transformers' tokenizer.json: %w", f.Name, ErrTokens, err)
	}
	switch {
	case len(f.Data) == 0:
		return fail(errors.New("the file is empty or missing"))
	case len(f.Data) > maxTokenFile:
		return fail(fmt.Errorf("it has %d bytes, at most %d are accepted", len(f.Data), maxTokenFile))
	}
	symbols, err := read(f.Data)
	if err != nil {
		return fail(err)
	}
	for i, s := range symbols {
		if unspoken.MatchString(s) {
			symbols[i] = ""
		}
	}
	return symbols, nil
}

// tokenizerBin reads entries in the order of their ids: a length of one byte,
// or two from 128 on (the low seven bits, then how many times 128), and the
// text. Bytes that form no whole character are byte tokens.
func tokenizerBin(data []byte) (symbols []string, err error) {
	for at := 0; at < len(data); {
		n := int(data[at])
		at++
		if n >= 128 && at < len(data) {
			n = n&127 + 128*int(data[at])
			at++
		}
		switch {
		case n > len(data)-at:
			return nil, fmt.Errorf("it ends in the middle of token %d", len(symbols))
		case n > maxSymbol || len(symbols) >= maxTokens:
			return nil, fmt.Errorf("token %d of %d bytes: at most %d tokens of %d bytes are accepted", len(symbols), n, maxTokens, maxSymbol)
		}
		symbols = append(symbols, string(data[at:at+n]))
		at += n
	}
	return symbols, nil
}

// tokenizerJSON reads the vocabulary and the added tokens.
func tokenizerJSON(data []byte) ([]string, error) {
	var file struct {
		Model struct {
			Vocab map[string]int `json:"vocab"`
		} `json:"model"`
		Added []struct {
			ID      int    `json:"id"`
			Content string `json:"content"`
		} `json:"added_tokens"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	var symbols []string
	add := func(id int, s string) error {
		if id < 0 || id >= maxTokens || len(s) > maxSymbol {
			return fmt.Errorf("token %.80q with id %d: at most %d tokens of %d bytes are accepted", s, id, maxTokens, maxSymbol)
		}
		if id >= len(symbols) {
			symbols = append(symbols, make([]string, id+1-len(symbols))...)
		}
		symbols[id] = s
		return nil
	}
	for s, id := range file.Model.Vocab {
		if err := add(id, s); err != nil {
			return nil, err
		}
	}
	for _, t := range file.Added {
		if err := add(t.ID, t.Content); err != nil {
			return nil, err
		}
	}
	if len(symbols) == 0 {
		return nil, errors.New("it has no model.vocab")
	}
	return symbols, nil
}
