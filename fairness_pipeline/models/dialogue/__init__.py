"""Dialogue models: their architectures, training and answering."""
