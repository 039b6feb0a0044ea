"""Corpora, with a subpackage for each kind of system. The modules here read, clean and download for all of them."""
