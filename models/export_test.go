package models

// Family is a made-up file of a known family.
type Family struct {
	Role     Role
	Contract string
	Part     Part
	Bytes    []byte
}

// EveryFamily returns the made-up files of recognise_test.go.
func EveryFamily() map[string]Family {
	families := map[string]Family{}
	for name, c := range everyFamily() {
		families[name] = Family{c.role, c.contract, c.part, c.graph.Bytes()}
	}
	return families
}
