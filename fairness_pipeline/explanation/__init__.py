"""Explains which words a classifier relies on, with one method per file."""
