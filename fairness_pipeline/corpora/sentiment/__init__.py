"""Corpora: the Equity Evaluation Corpus, and tweets with the intensity of an affect."""
