"""Models of speech, voices, overlaps, sounds and borders of words."""
