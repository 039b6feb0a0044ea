"""Measures of responses: one measure per file, listed in the registry."""
