"""Language models: what is asked is how likely they find a text."""
