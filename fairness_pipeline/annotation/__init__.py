"""What people say of texts: reading it, and how far they agree."""
