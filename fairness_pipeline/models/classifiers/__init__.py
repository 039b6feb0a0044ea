"""Text classifiers: what gives a text the probability of the positive class."""
