"""What the project is made of, for those who maintain it: pins with hashes, known weaknesses of the pinned versions."""
