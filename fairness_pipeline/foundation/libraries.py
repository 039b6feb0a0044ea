"""The versions of the libraries that a result was made with; they are part of its fingerprint."""

from functools import cache
from importlib import metadata

library_version = cache(metadata.version)
"""The version of a library. It cannot change within a process, so it is read from disk once."""


def library_versions(*libraries: str) -> dict[str, str]:
    """The version of each library, by name in alphabetical order."""
    return {name: library_version(name) for name in sorted(libraries)}
