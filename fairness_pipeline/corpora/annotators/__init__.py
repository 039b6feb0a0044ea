"""Corpora of items that several people labelled."""
