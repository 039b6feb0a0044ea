"""Corpora of comments, and of the stereotyped phrases in them."""
