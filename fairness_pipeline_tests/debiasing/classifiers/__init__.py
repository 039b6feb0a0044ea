"""Tests of methods for text classifiers."""
