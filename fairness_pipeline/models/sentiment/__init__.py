"""Sentiment and emotion systems, which give a sentence a score between 0 and 1 for an affect."""
