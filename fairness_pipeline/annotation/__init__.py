"""Annotators' labels of texts: inferring the true labels, and estimating the annotators' biases."""
