"""Language models, which say how likely a text is."""
