"""What is measured, in a wing for each kind of system; one measure a file."""
