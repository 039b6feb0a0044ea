"""Which versions of libraries a result was made with; they are part of its fingerprint."""

from functools import cache
from importlib import metadata

library_version = cache(metadata.version)
"""A library's; those of a process do not change, and each is read from disk once."""


def library_versions(*libraries: str) -> dict[str, str]:
    """By name."""
    return {name: library_version(name) for name in libraries}
