"""Dialogue models: their architectures, training and responses."""
