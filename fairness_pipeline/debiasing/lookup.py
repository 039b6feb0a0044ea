"""The lookup of a debiasing method by the name in a model's file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from fairness_pipeline.foundation.errors import FairnessError

M = TypeVar("M")


def method_named(methods: Mapping[str, M], name: Any, path: Path) -> M:
    """The method `name`.

    Args:
        methods: The methods for a kind of model, by name.
        name: The name in the file.
        path: The file.

    Raises:
        FairnessError: there is no such method; the error names the file.
    """
    if not isinstance(name, str) or name not in methods:
        raise FairnessError(f"{path}: debiasing: expected one of {', '.join(methods)}, found {name!r}")
    return methods[name]
