"""Which words a classifier leans on, one method a file."""
