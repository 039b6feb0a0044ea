"""Corpora of texts by authors of two groups."""
