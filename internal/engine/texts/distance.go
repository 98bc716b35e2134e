// Package texts compares and interprets written text: whether it is in another
// language, how far two texts differ.
package texts

// EditDistance returns Levenshtein's distance: the fewest insertions, deletions
// and substitutions that turn a into b.
func EditDistance[T comparable](a, b []T) int { return EditDistances(a, b)[len(b)] }

// EditDistances returns a's distances to the first 0 … len(b) elements of b.
func EditDistances[T comparable](a, b []T) []int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			above, cost := row[j+1], diagonal
			if x != y {
				cost = min(diagonal, above, row[j]) + 1
			}
			diagonal, row[j+1] = above, cost
		}
	}
	return row
}
