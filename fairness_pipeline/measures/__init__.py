"""What is measured on responses: one measure a file."""
