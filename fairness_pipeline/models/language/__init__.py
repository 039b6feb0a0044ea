"""Language models, which are asked how likely a text is."""
