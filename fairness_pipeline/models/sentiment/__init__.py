"""Sentiment and emotion systems: what gives a sentence a score between 0 and 1 for an affect."""
