"""What hears speech, voices, overlaps, sounds and borders of words."""
