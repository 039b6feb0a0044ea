"""Corpora of single-turn dialogues: reading, cleaning, splitting, and the generated sample."""
