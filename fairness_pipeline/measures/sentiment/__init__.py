"""Measures of sentiment systems: equity over pairs of sentences."""
