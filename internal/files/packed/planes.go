package packed

// Split reorders data into byte planes: first every stride-th byte from 0, then
// every stride-th byte from 1, and so on (the shuffle filter of HDF5). Weights
// of two and four bytes compress better that way, because their exponents
// become adjacent. A stride below 2 returns data unchanged.
func Split(data []byte, stride int) []byte {
	if stride < 2 {
		return data
	}
	out := make([]byte, 0, len(data))
	for plane := range stride {
		for i := plane; i < len(data); i += stride {
			out = append(out, data[i])
		}
	}
	return out
}

// join undoes Split.
func join(planes []byte, stride int) []byte {
	if stride < 2 {
		return planes
	}
	out := make([]byte, len(planes))
	next := 0
	for plane := range stride {
		for i := plane; i < len(out); i += stride {
			out[i] = planes[next]
			next++
		}
	}
	return out
}
