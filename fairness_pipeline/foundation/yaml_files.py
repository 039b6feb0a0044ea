"""Reads the YAML files of `data/` strictly and safely; errors name the file, the line and the key."""

import pickle
import re
import warnings
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args, get_origin
from urllib.parse import urlsplit

import pydantic
import yaml
from pydantic_core import PydanticCustomError, PydanticKnownError

from fairness_pipeline.foundation.errors import FairnessError, closest


class Specification(pydantic.BaseModel):
    """The base of everything that is read from YAML: unknown keys are refused, and nothing changes after loading."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, defer_build=True)

    renamed: ClassVar[Mapping[str, str]] = {}
    """Renamed keys: the old name, which is still read, and the new name."""
    unhashed: ClassVar[frozenset[str]] = frozenset()
    """Keys that change how fast something is made or how it is shown, but never the result."""

    def without(self, *names: str) -> Self:
        """A copy in which some keys are None, so that they are not hashed."""
        return self.model_copy(update=dict.fromkeys(names))

    @pydantic.model_validator(mode="before")
    @classmethod
    def _read_older_names(cls, content: Any, info: pydantic.ValidationInfo) -> Any:
        if not isinstance(content, dict):
            return content
        for old, new in cls.renamed.items():
            if old in content and new not in content:
                content = {new if key == old else key: value for key, value in content.items()}
                where = ""
                if info.context:
                    info.context["older"][new] = old
                    where = f"{info.context['path']}: "
                warnings.warn(f"{where}'{old}' is now called '{new}'; please rename it", FutureWarning, stacklevel=2)
        return content

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _refuse_boolean_for_number(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        if isinstance(value, bool) and info.field_name:
            annotation = cls.model_fields[info.field_name].annotation
            kinds = {annotation, *get_args(annotation)}
            if bool not in kinds and (number_kinds := kinds & {int, float}):
                raise PydanticKnownError("float_type" if float in number_kinds else "int_type")
        return value


Positive = Annotated[int, pydantic.Field(gt=0)]
Share = Annotated[float, pydantic.Field(gt=0, lt=1)]


def _age(value: Any) -> Any:
    match = re.fullmatch(r"(\d+)([mhd])", value) if isinstance(value, str) else None
    if not match or not int(match[1]):
        raise PydanticCustomError("age", "expected a time such as 30m, 12h or 7d")
    return timedelta(**{{"m": "minutes", "h": "hours", "d": "days"}[match[2]]: int(match[1])})


Age = Annotated[timedelta, pydantic.BeforeValidator(_age)]

_MESSAGES = {
    "tuple_type": "expected a list, such as [one, two]",
    "dict_type": "expected keys and values",
    "model_type": "expected keys and values",
    "string_type": "expected text (in quotes, if it looks like a number)",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number (a share as 0.1, not 10%)",
    "float_parsing": "expected a number (a share as 0.1, not 10%)",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "greater_than": "expected more than {gt:g}",
    "greater_than_equal": "expected {ge:g} or more",
    "less_than": "expected less than {lt:g}",
    "less_than_equal": "expected {le:g} or less",
    "too_short": "expected {min_length} at least, found {actual_length}",
    "finite_number": "expected a finite number",
    "literal_error": "expected {expected}",
}
"""This project's message for a wrong value, by pydantic's type of error; {} are filled from the error's context."""

SECRET = "secret"
"""The type of a pydantic error about a value that must not be shown."""

_SECRET_KEY = re.compile("(?i)(token|key|secret|password|sig|credential)[^=&]*=")

S = TypeVar("S", bound=Specification)


def check_variable(name: str | None, secret: str) -> str | None:
    """The name of an environment variable that holds a secret.

    Raises:
        ValueError: it may be the secret itself.
    """
    if name is not None and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
        raise PydanticCustomError(SECRET, f"expected the name of an environment variable in capitals, not {secret}")
    return name


def check_address(address: str, *, allow_query: bool = False) -> None:
    """Refuses an address that is not `http(s)://`, or that holds a secret, which would appear in files and logs.

    Raises:
        ValueError: the address cannot be used.
    """
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise PydanticCustomError(SECRET, "expected an address such as https://host/path")
    if parts.username or parts.password or (parts.query and not (allow_query and not _SECRET_KEY.search(parts.query))):
        raise PydanticCustomError(SECRET, "an address that carries a key or password ends up in files; leave it out")


class _KeysOnce(yaml.constructor.SafeConstructor):
    """YAML 1.1's safe subset. A key given twice is an error; the standard loader would silently use the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[Any, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if not isinstance(key, Hashable):
                raise FairnessError(f"line {line}: a key is a {type(key).__name__}; expected plain text (quote braces)")
            if key in seen:
                raise FairnessError(
                    f"line {line}: key '{key}' was given before, on line {seen[key]}; keep one of the two"
                )
            seen[key] = line
        return super().construct_mapping(node, deep)


class _Loader(_KeysOnce, yaml.SafeLoader):
    """The loader in Python, which gives the best error messages."""


class _FastLoader(_KeysOnce, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The loader in C, if it is available: ten times as fast."""


_NESTED = 1000
_DEEP_BLOCK = re.compile(rf"^[ ?-]{{{_NESTED}}}", re.MULTILINE)


def _read(read: Callable[..., Any], text: str) -> Any:
    """`yaml.load` or `yaml.compose` of `text`, with the C loader if the Python loader would read the same.

    The C loader accepts tabs where YAML forbids them, and endless nesting would crash the process.
    """
    deep = text.count("[") + text.count("{") > _NESTED or _DEEP_BLOCK.search(text)
    fast = not deep and "\t" not in text
    if "&" in text and "*" in text:
        _check_size(text, _FastLoader if fast else _Loader)
    if fast:
        with suppress(yaml.YAMLError):
            return read(text, Loader=_FastLoader)
    return read(text, Loader=_Loader)


@lru_cache(256)
def _pickled(text: str) -> bytes:
    """What a text means; a project's files are read several times by one process."""
    return pickle.dumps(_read(yaml.load, text))


_LARGEST = 100_000
"""The most values in a file, each counted as often as aliases repeat it."""


def _check_size(text: str, loader: Any) -> None:
    """Refuses a text whose aliases stand for more values than any file has (`a: [*b, *b], b: [*c, *c], ...`).

    Raises:
        FairnessError: a value is too large; names its line.
    """
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int, int]] = []  # anchor, size so far, line
    for event in yaml.parse(text, Loader=loader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, 1, line))
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size, line = open_nodes.pop()
        elif isinstance(event, yaml.ScalarEvent):
            anchor, size = event.anchor, 1
        elif isinstance(event, yaml.AliasEvent):
            anchor, size = None, sizes.get(event.anchor or "", 1)
        else:
            continue
        if anchor:
            sizes[anchor] = size
        if size > _LARGEST:
            raise FairnessError(f"line {line}: its aliases expand to more than {_LARGEST:,} values; write them out")
        if open_nodes:
            outer_anchor, outer_size, outer_line = open_nodes[-1]
            open_nodes[-1] = outer_anchor, outer_size + size, outer_line


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        FairnessError: the file is missing, not UTF-8, not YAML, not a mapping, or gives a key twice.
    """
    try:
        content = pickle.loads(_pickled(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise FairnessError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise FairnessError(f"{path}: expected UTF-8, byte {error.start} is not; save the file as UTF-8") from None
    except OSError as error:
        raise FairnessError(f"{path}: cannot be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise FairnessError(f"{path}{where}: not valid YAML: {error.problem}") from None
    except FairnessError as error:
        raise FairnessError(f"{path}, {error}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise FairnessError(f"{path}: not valid YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise FairnessError(f"{path}: nested too deeply to be read") from None
    if not isinstance(content, dict):
        kind = "an empty file" if content is None else type(content).__name__
        raise FairnessError(f"{path}: expected keys and values, found {kind}")
    return content


def validate(schema: type[S], content: dict[str, Any], path: Path, under: tuple[str, ...] = ()) -> S:
    """Validates `content` (found in the file `path` `under` these keys) as a `schema`.

    Raises:
        FairnessError: one line for each key that is unknown, missing or of the wrong kind.
    """
    older: dict[str, str] = {}  # the names that the file has for renamed keys, so that an error finds their line
    try:
        return schema.model_validate(content, context={"path": path, "older": older})
    except pydantic.ValidationError as error:
        errors = error.errors()
        # If elements of a list are wrong, pydantic drops them and also reports the list as too short: skip that report.
        errors = [e for e in errors if e["type"] != "too_short" or not any(_inside(o["loc"], e["loc"]) for o in errors)]
        raise FairnessError("\n".join(_explain(path, details, schema, under, older) for details in errors)) from None


def load(schema: type[S], path: Path) -> S:
    """Reads the file at `path` as a `schema`; raises FairnessError as in `read_yaml` and `validate`."""
    return validate(schema, read_yaml(path), path)


def _inside(location: tuple[Any, ...], parent: tuple[Any, ...]) -> bool:
    return len(location) > len(parent) and location[: len(parent)] == parent


def _explain(
    path: Path, details: Any, schema: type[Specification], under: tuple[str, ...], older: Mapping[str, str]
) -> str:
    location = (*under, *details["loc"])
    line = _line(path, tuple(older.get(part, part) for part in location))
    where = f"{path}" + (f", line {line}" if line else "")
    key = ".".join(str(part) for part in location) or "the whole file"
    if details["type"] == "extra_forbidden":
        known = sorted(_keys_at(schema, details["loc"][:-1]))
        close = closest(str(location[-1]), known)
        guess = f"; did you mean '{close[0]}'" if close else ""
        return f"{where}: unknown key '{key}'{guess}" + (f"; expected one of: {', '.join(known)}" if known else "")
    if details["type"] == "missing":
        return f"{where}: key '{key}' is missing"
    template = _MESSAGES.get(details["type"])
    message = template.format_map(details.get("ctx", {})) if template else details["msg"].removeprefix("Value error, ")
    value = details["input"]
    printable = isinstance(value, str | int | float | bool) or value is None
    suffix = f", found {_short(repr(value))}" if printable and details["type"] != SECRET else ""
    return f"{where}: {key}: {message}{suffix}"


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _keys_at(schema: type[Specification], location: tuple[Any, ...]) -> list[str]:
    """The keys that a mapping at `location` may have, if its type is a plain specification."""
    current: Any = schema
    in_mapping = False
    for part in location:
        if in_mapping or isinstance(part, int):  # a key in a mapping of specifications, or an index in a list of them
            in_mapping = False
            continue
        field = getattr(current, "model_fields", {}).get(part)
        if field is None:
            return []
        in_mapping = get_origin(field.annotation) is dict
        current = next((kind for kind in get_args(field.annotation) if hasattr(kind, "model_fields")), field.annotation)
    return list(getattr(current, "model_fields", {}))


def _line(path: Path, location: tuple[Any, ...]) -> int | None:
    """The line of the deepest part of `location` that exists in the file; None if there is no file yet."""
    if not path.is_file():
        return None
    node = _read(yaml.compose, path.read_text(encoding="utf-8"))
    line = None
    for part in location:
        if isinstance(node, yaml.MappingNode):
            entries = [(key, value) for key, value in node.value if key.value == str(part)]
            if not entries:
                break
            line, node = entries[0][0].start_mark.line + 1, entries[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line
