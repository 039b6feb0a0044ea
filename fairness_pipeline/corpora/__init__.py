"""Corpora, in a wing for each kind of system; what all wings read, clean and download with stands here."""
