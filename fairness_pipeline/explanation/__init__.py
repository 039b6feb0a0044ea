"""Which words a classifier relies on, one method per file."""
