"""Methods that make a model answer alike: one method a file."""
