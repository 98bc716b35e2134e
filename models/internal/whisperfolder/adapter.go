package whisperfolder

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/otograph/otograph/models"
)

// adapter is PEFT's adapter_config.json of a LoRA adapter.
type adapter struct {
	Kind     string             `json:"peft_type"`
	Base     string             `json:"base_model_name_or_path"`
	Alpha    float64            `json:"lora_alpha"`
	Alphas   map[string]float64 `json:"alpha_pattern"`
	RankRoot bool               `json:"use_rslora"`
	Turned   bool               `json:"fan_in_fan_out"`
	DoRA     bool               `json:"use_dora"`
	Bias     string             `json:"bias"`
	Saved    []string           `json:"modules_to_save"`
}

// parseAdapter decodes and checks an adapter_config.json.
func parseAdapter(data []byte) (*adapter, error) {
	var a adapter
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("%w: %w", models.ErrBroken, err)
	}
	alphas := []float64{a.Alpha}
	for _, alpha := range a.Alphas {
		alphas = append(alphas, alpha)
	}
	switch {
	case a.Kind != "LORA":
		return nil, fmt.Errorf("%w: peft_type: expected LORA, found %.40q", models.ErrUnsupported, a.Kind)
	case a.DoRA || a.Turned || a.Bias != "" && a.Bias != "none" || len(a.Saved) > 0:
		return nil, fmt.Errorf("%w: expected a LoRA adapter alone; found use_dora %t, fan_in_fan_out %t, bias %.40q, modules_to_save %.100q: merge it with PEFT (merge_and_unload) and import the result",
			models.ErrUnsupported, a.DoRA, a.Turned, a.Bias, a.Saved)
	case slices.ContainsFunc(alphas, func(v float64) bool { return !(v > 0) || math.IsInf(v, 0) }):
		return nil, fmt.Errorf("%w: lora_alpha: expected numbers above 0, found %g", models.ErrBroken, alphas)
	}
	return &a, nil
}

func readAdapter(dir string) (*adapter, error) {
	path := filepath.Join(dir, adapterConfig)
	data, err := readText(path, maxConfig)
	if err != nil {
		return nil, err
	}
	a, err := parseAdapter(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// loneAdapter returns an error that explains how to import a folder that only
// holds an adapter.
func loneAdapter(dir string) error {
	a, err := readAdapter(dir)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s: found a LoRA adapter without its base model, %.200q: run `otograph models import BASE --adapter %s` with the folder of the base model",
		models.ErrUnsupported, dir, cmp.Or(a.Base, "which is not named"), dir)
}

// factor returns the weight of the product of a module's matrices.
func (a *adapter) factor(module string, rank int64) float32 {
	alpha := a.Alpha
	for pattern, other := range a.Alphas {
		if module == pattern || strings.HasSuffix(module, "."+pattern) {
			alpha = other
		}
	}
	if a.RankRoot {
		return float32(alpha / math.Sqrt(float64(rank)))
	}
	return float32(alpha / float64(rank))
}

// adapted adds an adapter to weights: W + factor · B · A.
type adapted struct {
	weights
	changes map[string]*change // by OpenAI's name
}

// change is an adapter's addition to one matrix.
type change struct {
	factor float32
	rank   int64
	a      []float32 // rank rows of the matrix's width
	b      []float32 // the matrix's rows of rank numbers
}

// maxRank is the largest rank of an adapter.
const maxRank = 4096

// loraName matches a tensor of an adapter: the module and which of its
// matrices.
var loraName = regexp.MustCompile(`^(?:base_model\.model\.)?(?:model\.)?((?:encoder|decoder)\..+)\.lora_([AB])(?:\.default)?\.weight$`)

// merge reads the adapter in a folder.
func (f *Folder) merge(dir string) error {
	config, err := readAdapter(dir)
	if err != nil {
		return err
	}
	w := &hf{dir: dir, tensors: map[string]located{}, used: map[string]bool{}}
	if err := f.shard(w, adapterWeights, nil); err != nil {
		return err
	}
	path := filepath.Join(dir, adapterWeights)
	modules := map[string][2]*values{}
	for name := range w.tensors {
		m := loraName.FindStringSubmatch(name)
		if m == nil {
			return fmt.Errorf("%w: %s: expected lora_A and lora_B of the encoder's and decoder's modules, found %.100q", models.ErrUnsupported, path, name)
		}
		v, err := w.tensor(name)
		if err != nil {
			return err
		}
		pair := modules[m[1]]
		pair[m[2][0]-'A'] = v
		modules[m[1]] = pair
	}
	all := &adapted{weights: f.weights, changes: map[string]*change{}}
	slots := tensors(f.Header)
	for module, pair := range modules {
		i := slices.IndexFunc(slots, func(s slot) bool { return hfNames.Replace(s.name) == module+".weight" })
		if i < 0 || len(slots[i].shape) != 2 || pair[0] == nil || pair[1] == nil {
			return fmt.Errorf("%w: %s: module %.100q: expected lora_A and lora_B for a matrix of the model", models.ErrUnsupported, path, module)
		}
		c, err := read(pair, slots[i])
		if err != nil {
			return err
		}
		c.factor = config.factor(module, c.rank)
		all.changes[slots[i].name] = c
	}
	if len(all.changes) == 0 {
		return fmt.Errorf("%w: %s: expected an adapter, found no tensors", models.ErrBroken, path)
	}
	f.weights = all
	return nil
}

// read reads the two matrices of a module.
func read(pair [2]*values, s slot) (*change, error) {
	a, b := pair[0], pair[1]
	if len(a.shape) != 2 || a.shape[0] < 1 || a.shape[0] > maxRank || a.shape[1] != s.shape[1] || !b.like([]int64{s.shape[0], a.shape[0]}) {
		return nil, fmt.Errorf("%w: %s: expected matrices [r, %d] and [%d, r], found %v and %v", models.ErrBroken, a.name, s.shape[1], s.shape[0], a.shape, b.shape)
	}
	c := &change{rank: a.shape[0]}
	var err error
	if c.a, err = a.all(); err != nil {
		return nil, err
	}
	c.b, err = b.all()
	return c, err
}

func (w *adapted) find(name string) (*values, error) {
	v, err := w.weights.find(name)
	c := w.changes[name]
	if err != nil || c == nil {
		return v, err
	}
	width := int64(len(c.a)) / c.rank
	sum := make([]float32, width)
	return &values{v.name, v.shape, func(into []float32, from int64) error {
		if err := v.read(into, from); err != nil {
			return err
		}
		for len(into) > 0 {
			row, column := from/width, from%width
			n := min(width-column, int64(len(into)))
			c.row(sum[:n], row, column)
			for i, v := range sum[:n] {
				into[i] += v
			}
			into, from = into[n:], from+n
		}
		return nil
	}}, nil
}

// row fills sum with a part of a row of the addition, starting at a column.
func (c *change) row(sum []float32, row, column int64) {
	clear(sum)
	width := int64(len(c.a)) / c.rank
	for k := range c.rank {
		b := c.b[row*c.rank+k]
		for i, a := range c.a[k*width+column:][:len(sum)] {
			sum[i] += b * a
		}
	}
	for i := range sum {
		sum[i] *= c.factor
	}
}
