"""Prints the reference of all keys of all YAML files, from the code that reads them (`make reference`)."""

import ast
import inspect
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from itertools import pairwise
from textwrap import dedent
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pydantic
from pydantic_core import PydanticUndefined

from fairness_pipeline.debiasing.classifiers.registry import METHODS as CLASSIFIER_METHODS
from fairness_pipeline.debiasing.dialogue.registry import METHODS
from fairness_pipeline.debiasing.language.registry import METHODS as LANGUAGE_METHODS
from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.project.project import whole_profile
from fairness_pipeline.project.study import studies

_HEAD = """# Reference of all keys

Written by `make reference` from the code that reads the files. An unknown key, a
missing one or a wrong value is refused with file, line and key. `required` has no default.
"""


def reference() -> str:
    """Returns the reference page, as Markdown."""
    files: dict[str, type[Specification]] = {"profiles": whole_profile(), "dimensions": Dimension}
    for study in studies():
        files |= study.files
    lines = [_HEAD]
    for folder, schema in files.items():
        lines += [f"## data/{folder}", "", _description(schema), "", *_table(schema), ""]
    lines += ["## The settings of a debiasing method: `settings` of a model", ""]
    settings: dict[str, type[Specification]] = {name: method.settings for name, method in METHODS.items()}
    settings |= {f"{name} (language models)": method.settings for name, method in LANGUAGE_METHODS.items()}
    settings |= {f"{name} (text classifiers)": method.settings for name, method in CLASSIFIER_METHODS.items()}
    for settings_schema in dict.fromkeys(settings.values()):
        names = ", ".join(name for name, kind in settings.items() if kind is settings_schema)
        lines += [f"### {names}", "", _description(settings_schema), "", *_table(settings_schema), ""]
    return "\n".join(lines).rstrip() + "\n"


def _description(schema: type[pydantic.BaseModel]) -> str:
    text = inspect.getdoc(schema) or ""
    return " ".join(text.split())


def _table(schema: type[pydantic.BaseModel]) -> list[str]:
    rows = [f"| `{key}` | {kind} | {default} | {meaning} |" for key, kind, default, meaning in _rows(schema, "")]
    if not rows:
        return ["It has none."]
    return ["| key | type | default | meaning |", "| --- | --- | --- | --- |", *rows]


def _rows(schema: type[pydantic.BaseModel], prefix: str) -> Iterator[tuple[str, str, str, str]]:
    """Yields a row for each key: the key, its type, default and meaning. The keys of a section follow it."""
    for name, field in schema.model_fields.items():
        key = f"{prefix}{name}"
        section = _section(field.annotation)
        meaning = field.description or _meanings(schema).get(name, "")
        yield key, _kind(field.annotation), _default(field), " ".join(meaning.split())
        if section is not None:
            yield from _rows(section, f"{key}.")


@cache
def _meanings(schema: type[pydantic.BaseModel]) -> dict[str, str]:
    """Returns the text that follows each key in the source of the schema and of its bases.

    Pydantic could read it too, but at every start of a command.
    """
    meanings: dict[str, str] = {}
    for kind in reversed(schema.__mro__):
        if not issubclass(kind, Specification):
            continue
        try:
            (definition,) = ast.parse(dedent(inspect.getsource(kind))).body
        except OSError:  # has no source: built from the sections of other classes
            continue
        assert isinstance(definition, ast.ClassDef)
        for key, text in pairwise(definition.body):
            if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name) and isinstance(text, ast.Expr):
                meanings[key.target.id] = ast.literal_eval(text.value)
    return meanings


def _section(annotation: Any) -> type[Specification] | None:
    """Returns the specification of a key that has keys of its own."""
    if isinstance(annotation, type) and issubclass(annotation, Specification):
        return annotation
    if get_origin(annotation) in (Union, UnionType, Annotated, tuple, dict):
        return next((section for part in get_args(annotation) if (section := _section(part))), None)
    return None


def _kind(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0])
    if origin in (Union, UnionType):
        return " or ".join(_kind(part) for part in arguments if part is not type(None))
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is not Ellipsis:
            return f"[{_kind(arguments[0])}, {_kind(arguments[1])}]"
        return f"list of {_kind(arguments[0])}"
    if origin is dict:
        return f"{_kind(arguments[0])}: {_kind(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, Specification):
        return "keys"
    names = {
        str: "text", int: "whole number", float: "number", bool: "true or false", timedelta: "time", Any: "anything"
    }  # fmt: skip
    return names.get(annotation, str(getattr(annotation, "__name__", annotation)))


def _default(field: Any) -> str:
    default = field.get_default(call_default_factory=True)
    if default is PydanticUndefined:
        return "required"
    if isinstance(default, pydantic.BaseModel):
        return "its defaults"
    if default is None:
        return "–"
    if isinstance(default, dict):
        values = {
            k: v.model_dump(exclude_none=True) if isinstance(v, pydantic.BaseModel) else v for k, v in default.items()
        }
        return f"`{values}`" if values else "none"
    if isinstance(default, tuple):
        return f"`{list(default)}`" if default else "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`".replace("\n", "\\n").replace(
        "|", "\\|"
    )


if __name__ == "__main__":
    print(reference(), end="")
