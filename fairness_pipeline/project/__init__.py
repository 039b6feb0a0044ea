"""A profile with everything that it names, and what a study is."""
