"""Debiasing methods, in a wing for each kind of model; one method a file."""
