"""Corpora of texts whose authors belong to one of two groups."""
