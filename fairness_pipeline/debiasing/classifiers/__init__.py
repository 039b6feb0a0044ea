"""Debiasing of text classifiers, one method a file."""
