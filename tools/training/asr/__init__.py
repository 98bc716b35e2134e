"""The two recognizers and the language model."""
