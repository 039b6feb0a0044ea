"""Debiasing of causal language models: losses beside that of language modelling, and augmented data."""
