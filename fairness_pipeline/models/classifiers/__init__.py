"""Text classifiers, which give a text the probability of the positive class."""
