"""What people say about texts: reading their labels, and measuring how far they agree."""
