"""Measures for each kind of system, one measure per file."""
