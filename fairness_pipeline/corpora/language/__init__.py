"""Corpora of comments and phrases that stereotypes are found in."""
