package library

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/internal/whisperfolder"
)

// maxScan limits how many files in one folder are examined.
const maxScan = 2000

// scan opens a folder without a manifest.
func scan(dir string) (*models.Set, error) {
	m, ignored, err := recognizeFolder(dir)
	if err != nil {
		return nil, err
	}
	set, err := m.open(dir)
	if err != nil {
		return nil, err
	}
	set.Ignored = ignored
	if len(set.Models) == 0 {
		if layout := whisperfolder.Find(dir); layout != "" {
			return nil, fmt.Errorf("%w: %s: expected a folder of models, found Whisper as %s: run `otograph models import %s`", models.ErrUnsupported, dir, layout, dir)
		}
	}
	return set, nil
}

// recognizeFolder returns a manifest of the models in a folder and its direct
// subfolders. ignored holds the reason for each model file that serves no role.
func recognizeFolder(dir string) (m *manifest, ignored []error, err error) {
	m = &manifest{Name: filepath.Base(dir), Roles: map[string]oneOrMany[entry]{}}
	folders, err := foldersOf(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, folder := range folders {
		entries, skipped, err := recognizeFiles(dir, folder, "")
		if err != nil {
			return nil, nil, err
		}
		ignored = append(ignored, skipped...)
		for role, found := range entries {
			m.Roles[string(role)] = append(m.Roles[string(role)], found...)
		}
	}
	for _, role := range models.Roles() {
		found := m.Roles[string(role)]
		if len(found) > 1 && role != models.RoleOptimized {
			var names []string
			for _, e := range found {
				names = append(names, e.main())
			}
			return nil, nil, fmt.Errorf("%w: %s: role %s: expected one, found %s; name one in %s or pass --%s-model FILE",
				ErrAmbiguous, dir, role, strings.Join(names, ", "), manifestName, role)
		}
		unique(found)
	}
	return m, ignored, nil
}

// foldersOf returns a folder, as ".", and its direct subfolders.
func foldersOf(dir string) ([]string, error) {
	names, err := list(dir)
	return append([]string{"."}, slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err != nil || !info.IsDir()
	})...), err
}

// list returns the visible names in a folder, sorted.
func list(dir string) ([]string, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(found) > maxScan {
		return nil, fmt.Errorf("%w: %s: expected a folder of models, found %d files", models.ErrBroken, dir, len(found))
	}
	var names []string
	for _, f := range found {
		if !strings.HasPrefix(f.Name(), ".") {
			names = append(names, f.Name())
		}
	}
	return names, nil
}

// unique assigns entries of one role different names.
func unique(entries []entry) {
	seen := map[string]bool{}
	for i := range entries {
		name := entries[i].name()
		for n := 2; seen[name]; n++ {
			name = fmt.Sprintf("%s-%d", entries[i].name(), n)
		}
		seen[name] = true
		entries[i].Name = name
	}
}

type candidate struct {
	name  string
	found *models.Recognized
}

// recognizeFiles groups the model files of dir/folder into models. contract, if
// set, applies to graphs of no known family.
func recognizeFiles(dir, folder, contract string) (map[models.Role][]entry, []error, error) {
	names, err := list(filepath.Join(dir, folder))
	if err != nil {
		return nil, nil, err
	}
	var ignored []error
	var files []candidate
	for _, name := range names {
		extension := strings.ToLower(filepath.Ext(name))
		if name == moonshineTokens[0] {
			continue
		}
		switch extension {
		case ".onnx", ".bin", ".gguf", ".pt", ".pth", ".ckpt", ".nemo", ".ort", ".npz", ".safetensors", ".tflite", ".h5":
		default:
			continue
		}
		found, err := recognizeAs(filepath.Join(dir, folder, name), contract)
		switch {
		case errors.Is(err, models.ErrUnsupported), err != nil && extension != ".onnx" && !isGGML(filepath.Join(dir, folder, name)):
			ignored = append(ignored, err)
			continue
		case err != nil:
			return nil, nil, err
		case found.Helper:
			continue
		}
		files = append(files, candidate{name, found})
	}
	byRole := map[models.Role][]entry{}
	for _, group := range groups(onePrecision(files)) {
		e := entry{Files: map[models.Part]string{}}
		for _, c := range group {
			e.Files[c.found.Part] = path.Join(folder, c.name)
		}
		if e.main() == "" {
			for _, c := range group {
				ignored = append(ignored, fmt.Errorf("%w: %s: a %s without its encoder", models.ErrMissing, filepath.Join(dir, folder, c.name), c.found.Part))
			}
			continue
		}
		if err := e.companions(dir, group[0].found); err != nil {
			return nil, nil, err
		}
		role := group[0].found.Role
		byRole[role] = append(byRole[role], e)
	}
	return byRole, ignored, nil
}

// isGGML reports whether a file begins like Whisper; others are ignored.
func isGGML(file string) bool {
	head, err := whisperfolder.Begin(file)
	return err == nil && len(head) >= 4 && binary.LittleEndian.Uint32(head) == ggmlfile.Magic
}

// onePrecision keeps one of several files with the same model in different
// precision (model.onnx, model.int8.onnx): for recognizers and taggers the
// 8-bit one, which is faster on a CPU and in the catalog; for the other roles,
// whose networks are small, the exact one. A manifest can select the other one.
func onePrecision(files []candidate) []candidate {
	return slices.DeleteFunc(slices.Clone(files), func(c candidate) bool {
		eighth := c.found.Role == models.RoleOptimized || c.found.Role == models.RoleTagger
		return quantized(c.name) != eighth && slices.ContainsFunc(files, func(o candidate) bool {
			return quantized(o.name) == eighth && stem(o.name) == stem(c.name) && o.found.Part == c.found.Part &&
				o.found.Role == c.found.Role && o.found.Contract == c.found.Contract
		})
	})
}

// quantized reports whether a file's name indicates 8-bit weights:
// model.int8.onnx, model_quant.onnx, model_quantized.onnx.
func quantized(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "int8") || strings.Contains(name, "quant")
}

var precisions = []string{"int8", "quint8", "uint8", "quant", "quantized", "fp16", "fp32"}

// stem returns a file name without its extension and precision mark.
func stem(name string) string {
	name = strings.TrimSuffix(name, path.Ext(name))
	for _, mark := range precisions {
		for _, joint := range []string{".", "-", "_"} {
			name = strings.TrimSuffix(name, joint+mark)
		}
	}
	return name
}

// groups combines a transducer's parts; every other file is a model.
func groups(files []candidate) [][]candidate {
	var out [][]candidate
	var transducer []candidate
	for _, c := range files {
		if c.found.Part == models.PartModel {
			out = append(out, []candidate{c})
			continue
		}
		if i := slices.IndexFunc(transducer, func(o candidate) bool { return o.found.Part == c.found.Part }); i >= 0 {
			if stem(c.name) == stem(transducer[i].name)+attentionMark {
				transducer[i] = c
			}
			continue // a second set of parts in one folder needs a manifest
		}
		transducer = append(transducer, c)
	}
	if transducer != nil {
		// The encoder identifies the model.
		slices.SortStableFunc(transducer, func(a, b candidate) int {
			return slices.Index(partOrder, a.found.Part) - slices.Index(partOrder, b.found.Part)
		})
		out = append(out, transducer)
	}
	return out
}

// pldaName is the name of an embedder's PLDA.
const pldaName = "plda.json"

// attentionMark is the end of the name of a Moonshine decoder that also returns
// its attention, from which words get their times.
const attentionMark = "_with_attention"

// moonshineTokens are the names of Moonshine's token list.
var moonshineTokens = []string{"tokenizer.bin", "tokenizer.json"}

// single returns an entry of one recognized file with its companions.
func single(file string, found *models.Recognized) (entry, error) {
	e := entry{Files: map[models.Part]string{found.Part: filepath.Base(file)}}
	return e, e.companions(filepath.Dir(file), found)
}

// companions completes an entry with the files in the folder of its main file:
// plda.json of an embedder; of the optimized tier the other graphs of a
// transducer, tokens, am.mvn, config.json, a language model.
func (e *entry) companions(dir string, found *models.Recognized) error {
	if found.Role != models.RoleOptimized && found.Role != models.RoleEmbedder {
		return nil
	}
	main := e.main()
	if main == "" {
		return fmt.Errorf("%w: role %s: expected the encoder of the model, found its %s", models.ErrBroken, found.Role, found.Part)
	}
	folder, base := path.Dir(main), path.Base(main)
	plain, whole := stem(base), strings.TrimSuffix(base, path.Ext(base))
	exists := func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, folder, name))
		return err == nil && info.Mode().IsRegular()
	}
	if found.Role == models.RoleEmbedder {
		if exists(pldaName) {
			e.Files[models.PartPLDA] = path.Join(folder, pldaName)
		}
		return nil
	}
	if found.Part == models.PartEncoder {
		for _, p := range []struct {
			part models.Part
			word string
		}{
			{models.PartDecoder, "decoder"},
			{models.PartJoiner, "joiner"},
			{models.PartJoiner, "joint"},
			{models.PartDecoderJoint, "decoder_joint"},
			{models.PartDecoder, "decoder_kv" + attentionMark},
			{models.PartDecoder, "decoder_kv"},
			{models.PartJoiner, "cross_kv"},
			{models.PartFrontend, "frontend"},
			{models.PartAdapter, "adapter"},
		} {
			// The same precision first, then the exact graph: archives of
			// icefall hold an 8-bit encoder and joiner with an exact decoder.
			// Moonshine's decoder is decoder_model_merged.
			for _, of := range []string{base, plain + path.Ext(base), plain + "_merged" + strings.TrimPrefix(base, plain), plain + "_merged" + path.Ext(base)} {
				name := strings.Replace(of, "encoder", p.word, 1)
				if e.Files[p.part] != "" || name == of || !exists(name) {
					continue
				}
				if other, err := models.Recognize(filepath.Join(dir, folder, name)); err == nil && other.Part == p.part {
					e.Files[p.part] = path.Join(folder, name)
				}
			}
		}
	}
	config := "config.json"
	if found.Contract == models.ContractWaveformCTC {
		config = "preprocessor_config.json"
	}
	// onnx-asr names the vocabulary of GigaAM after the model:
	// v3_e2e_rnnt_vocab.txt, v2_vocab.txt.
	short := strings.TrimSuffix(plain, "_encoder")
	version, _, _ := strings.Cut(short, "_")
	own := []string{short + "_vocab.txt", version + "_vocab.txt", whole + "-tokens.txt", whole + ".tokens.txt", plain + "-tokens.txt", plain + ".tokens.txt"}
	tokens := append(own, "tokens.txt", "vocab.txt", "units.txt", "tokens.json", "vocab.json")
	if found.Contract == models.ContractMoonshine {
		tokens, config = moonshineTokens, "streaming_config.json"
	}
	for part, names := range map[models.Part][]string{
		models.PartTokens: tokens,
		models.PartCMVN:   {"am.mvn"},
		models.PartConfig: {config},
		models.PartLM:     {whole + ".arpa", whole + "-lm.arpa", plain + "-lm.arpa", "lm.arpa"},
	} {
		if i := slices.IndexFunc(names, exists); i >= 0 && e.Files[part] == "" {
			e.Files[part] = path.Join(folder, names[i])
		}
	}
	return nil
}
