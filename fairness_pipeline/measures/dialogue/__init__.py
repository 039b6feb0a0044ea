"""Measures of responses: one measure a file, named in the registry."""
