package whisper

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/otograph/otograph/internal/native"
	"github.com/otograph/otograph/internal/processor"
	"github.com/otograph/otograph/internal/userdata"
)

// EnvBLAS is the environment variable that decides whether OpenBLAS computes the
// encoder's matrix products: "on" or "off". Without it, the faster code is used.
const EnvBLAS = "OTOGRAPH_BLAS"

// blasMargin is the share of the CPU code's time that OpenBLAS must stay under to be
// used: a smaller gain would be lost in what else the encoder computes.
const blasMargin = 0.9

// blasTypes are the tensor types that [InspectBLAS] measures.
var blasTypes = map[string]int32{"f16": 1, "q8_0": 8}

// Race is the processor time that one matrix product takes on one thread.
type Race struct {
	CPU  time.Duration `json:"cpu"`  // by ggml's code for this processor, or the kernels
	BLAS time.Duration `json:"blas"` // by OpenBLAS
	// Packed names the layout in which ggml keeps such weights, if it is a
	// special one, as for AMX code: OpenBLAS could not read them, so there is
	// no race. "" otherwise.
	Packed string `json:"packed,omitempty"`
}

func (r Race) won() bool { return r.Packed == "" && float64(r.BLAS) < blasMargin*float64(r.CPU) }

// BLAS describes how the encoder's matrix products are computed.
type BLAS struct {
	// Setting is the value of OTOGRAPH_BLAS, "" to decide by the measurements.
	Setting string
	// Kernel is OpenBLAS's name of its code for this processor, such as "Haswell".
	Kernel string
	// Races holds the measurement for each type of weights, by ggml's name.
	Races map[string]Race
	// File is where the measurements are remembered, "" for nowhere.
	File string
	// Missing is the reason why there is no OpenBLAS; nil if there is.
	Missing error
}

// Used reports whether models whose weights are of this type use OpenBLAS.
func (b BLAS) Used(weights string) bool {
	r := b.Races[weights]
	return b.Missing == nil && (b.Setting == "on" && r.Packed == "" || b.Setting == "" && r.won())
}

// InspectBLAS describes how the encoder's matrix products are computed, and measures
// what has not been measured on this machine. The error says that libwhisper is
// missing, or that OTOGRAPH_BLAS has a wrong value.
func InspectBLAS() (BLAS, error) {
	setting, err := blasSetting()
	if err != nil {
		return BLAS{}, err
	}
	if err := openLibrary(); err != nil {
		return BLAS{}, err
	}
	b := BLAS{Setting: setting, Races: map[string]Race{}, File: blasFile(), Missing: openBLAS()}
	if b.Missing == nil {
		b.Kernel = blasKernel()
		err = b.measure()
	}
	return b, err
}

func (b *BLAS) measure() error {
	for name, kind := range blasTypes {
		r, err := race(kind)
		if err != nil {
			return err
		}
		b.Races[name] = r
	}
	return nil
}

func blasSetting() (string, error) {
	s := os.Getenv(EnvBLAS)
	if s != "" && s != "on" && s != "off" {
		return "", fmt.Errorf("whisper: %s: expected on or off, found %q", EnvBLAS, s)
	}
	return s, nil
}

// useBLAS decides whether a model whose weights are of this type uses OpenBLAS.
func useBLAS(kind int32) (bool, error) {
	setting, err := blasSetting()
	if err != nil || setting == "off" {
		return false, err
	}
	if setting == "on" {
		if err := openBLAS(); err != nil {
			return false, fmt.Errorf("whisper: %s=on: %w", EnvBLAS, err)
		}
		return true, nil
	}
	if r, ok := races.recall(kind); ok && !r.won() {
		return false, nil // not even loaded
	}
	if hasBLAS() {
		r, err := race(kind)
		return err == nil && r.won(), err
	}
	return false, nil
}

func hasBLAS() bool { return openBLAS() == nil }

// openBLAS loads OpenBLAS and ggml's plug-in, once; libwhisper is open. They stay.
func openBLAS() error {
	library.Lock()
	defer library.Unlock()
	if library.blas {
		return nil
	}
	dir, err := native.Whisper()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "blas")); err != nil || dir == "" {
		return fmt.Errorf("OpenBLAS is not among the native libraries: %w; run `otograph native`", native.ErrMissing)
	}
	if err := loadBLAS(dir); err != nil {
		return fmt.Errorf("OpenBLAS in %s/blas cannot be used: %w: %w", dir, err, ErrLibrary)
	}
	library.blas = true
	return nil
}

// race returns the measurement for weights of a type, from memory if there is one.
func race(kind int32) (Race, error) {
	if r, ok := races.recall(kind); ok {
		return r, nil
	}
	r, ok := measureProduct(kind)
	if !ok {
		return Race{}, fmt.Errorf("whisper: OpenBLAS could not be measured: %w; set %s=off to disable it", ErrLibrary, EnvBLAS)
	}
	races.remember(kind, r)
	return r, nil
}

// blasTable is the file of the measurements in the user's data folder.
const blasTable = "blas.json"

// blasFile returns the path of the file that holds the measurements, "" where the user
// has no data folder.
func blasFile() string {
	name, err := userdata.Dir(blasTable)
	if err != nil {
		return ""
	}
	return name
}

// memory holds the measurements of this process, and those that the file has.
type memory struct {
	sync.Mutex
	known map[string]Race
}

var races memory

// recall returns what was measured on a machine like this one with these libraries.
func (m *memory) recall(kind int32) (Race, bool) {
	m.Lock()
	defer m.Unlock()
	if m.known == nil {
		m.known = readRaces()
	}
	r, ok := m.known[raceKey(kind)]
	return r, ok
}

// remember keeps a measurement, in the file too where that can be written: without it
// the next process measures again.
func (m *memory) remember(kind int32, r Race) {
	m.Lock()
	defer m.Unlock()
	all := readRaces() // other processes measure too
	maps.Copy(all, m.known)
	all[raceKey(kind)] = r
	m.known = all
	_ = userdata.WriteTable(blasTable, all)
}

// kernelsVersion changes when the kernels do, so that they are measured again.
const kernelsVersion = "2"

// kernelsKey names the kernels that compute products without OpenBLAS.
func kernelsKey() string {
	library.Lock()
	defer library.Unlock()
	return cmp.Or(library.kernels, "no") + " kernels " + kernelsVersion
}

// raceKey names what a measurement depends on: the processor, the libraries, the kernels
// and the weights. A data folder may be shared by machines.
func raceKey(kind int32) string {
	parts := []string{processor.Name(), strings.Join(strings.Fields(systemInfo()), " "), kernelsKey()}
	if facts, err := native.Versions(); err == nil {
		for _, p := range facts.Parts {
			if strings.Contains(p.Name, "ggml0") || strings.Contains(p.Name, "openblas") {
				parts = append(parts, p.Name+" "+p.Version)
			}
		}
	}
	return strings.Join(append(parts, typeName(kind)), "; ")
}

// readRaces returns the measurements that the file holds.
func readRaces() map[string]Race {
	all := userdata.ReadTable[Race](blasTable)
	maps.DeleteFunc(all, func(_ string, r Race) bool { return r.Packed == "" && (r.CPU <= 0 || r.BLAS <= 0) })
	return all
}
