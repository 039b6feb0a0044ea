"""Debiasing of dialogue models, one method a file."""
