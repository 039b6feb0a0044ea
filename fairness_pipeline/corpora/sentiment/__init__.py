"""Corpora of the Equity Evaluation Corpus, and tweets with an affect."""
