"""A profile with everything that it names, and the interface of a study."""
