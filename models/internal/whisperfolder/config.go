package whisperfolder

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/models"
)

// Size limits of a folder's text files.
const (
	maxConfig     = 1 << 20  // bytes
	maxVocabulary = 32 << 20 // bytes; tokenizer.json of Whisper has 4 MB
	maxReadMe     = 1 << 20  // bytes
)

// config holds the fields in use of config.json (transformers and CTranslate2)
// and of generation_config.json.
type config struct {
	ModelType      string   `json:"model_type"`
	Name           string   `json:"_name_or_path"`
	Width          int32    `json:"d_model"`
	AudioHeads     int32    `json:"encoder_attention_heads"`
	TextHeads      int32    `json:"decoder_attention_heads"`
	AudioLayers    int32    `json:"encoder_layers"`
	TextLayers     int32    `json:"decoder_layers"`
	Activation     string   `json:"activation_function"`
	Scaled         bool     `json:"scale_embedding"`
	AlignmentHeads [][2]int `json:"alignment_heads"`
	// NoTimes is the token that requests a text without times. Models that were
	// trained without times mostly lack this field.
	NoTimes *int `json:"no_timestamps_token_id"`
}

// readJSON reads a JSON file of at most limit bytes.
func readJSON(path string, limit int64, into any) error {
	data, err := ReadText(path, limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %s: %w", models.ErrBroken, path, err)
	}
	return nil
}

// ReadText reads a file of at most limit bytes, with package models' errors.
func ReadText(path string, limit int64) ([]byte, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > limit {
		return nil, fmt.Errorf("%w: %s: expected at most %d bytes, found %d", models.ErrBroken, path, limit, size)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// statedLicense returns the license in the front matter of a model card.
func statedLicense(dir string) string {
	data, err := ReadText(filepath.Join(dir, "README.md"), maxReadMe)
	if err != nil {
		return ""
	}
	lines := strings.Split(string(data), "\n")
	if strings.TrimSpace(lines[0]) != "---" {
		return ""
	}
	for _, line := range lines[1:] {
		if strings.TrimSpace(line) == "---" {
			break
		}
		if value, ok := strings.CutPrefix(line, "license:"); ok {
			if value = strings.Trim(strings.TrimSpace(value), `"'`); len(value) <= maxLicense {
				return value
			}
		}
	}
	return ""
}

// maxLicense is the longest name of a license (bytes).
const maxLicense = 100
