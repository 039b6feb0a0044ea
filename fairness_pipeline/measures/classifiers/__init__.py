"""Measures of text classifiers: error rates by author group."""
