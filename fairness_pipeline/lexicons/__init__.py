"""Bias dimensions, their word lists, and the matching and counterfactual swapping of their words."""
