"""The project's dependencies, for maintainers: pins with hashes, and known weaknesses of the pinned versions."""
