"""Corpora of dialogues, and the contexts that an audit asks models to answer."""
