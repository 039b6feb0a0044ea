"""Draws that depend on a text alone, so that it gets the same split in every run."""

from hashlib import blake2b


def uniform(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / 2.0**64
