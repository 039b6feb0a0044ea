"""Statistics of outcomes by group."""
