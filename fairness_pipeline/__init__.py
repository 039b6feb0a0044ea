"""Measure, explain and remove social bias in dialogue and language models."""
