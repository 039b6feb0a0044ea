"""Tests of text classifiers."""
