"""Reads messages and groups that a user names on the command line, before a table is stored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairness_pipeline.corpora.outcomes.groups import Groups
from fairness_pipeline.corpora.outcomes.messages import read_messages
from fairness_pipeline.corpora.outcomes.questions import Questions, ask
from fairness_pipeline.corpora.outcomes.specification import SHIPPED_MESSAGES
from fairness_pipeline.foundation.errors import FairnessError, unknown
from fairness_pipeline.foundation.paths import data_file, yaml_files
from fairness_pipeline.foundation.plain_text import number_of, some
from fairness_pipeline.foundation.yaml_files import load, read_yaml
from fairness_pipeline.measures.outcomes.group_effects import FEWEST_NAMES
from fairness_pipeline.project.project import find

_TODAY = "today"
_YAML = (".yaml", ".yml")
_MOST_NAMED = 3


def message_document(groups: str, messages: str | None, spans: int | None) -> dict[str, Any]:
    """The content of a table's file for messages that are asked about groups.

    Args:
        groups: Keys of `data/groups` or YAML files, separated by commas.
        messages: A key of `data/messages`, or a file; by default the messages with the groups' key, or `today`.
        spans: The number of spans of a group for each message.

    Raises:
        FairnessError: there is no such file.
    """
    names = [_key_or_path(name.strip()) for name in groups.split(",") if name.strip()]
    stems = [Path(name).stem for name in names]
    if doubled := [stem for stem in stems if stems.count(stem) > 1]:
        raise FairnessError(f"--groups: '{doubled[0]}' is given twice; groups are crossed by files of different names")
    known = yaml_files("messages")
    path = known.get(messages or (names[0] if names[0] in known else _TODAY)) or Path(str(messages)).expanduser()
    if not path.is_file():
        raise FairnessError(f"--messages: {messages}: no such file, and none of {', '.join(known)}")
    shipped = read_yaml(data_file(SHIPPED_MESSAGES))
    chosen = {"groups": names, "file": {"path": str(path.resolve())}, **({"spans": spans} if spans else {})}
    return {**shipped, **chosen}


def groups_file(name: str, folder: Path = Path(), *source: Any) -> Path:
    """The path of a file of groups.

    Args:
        name: A key of `data/groups`, or a path.
        folder: The folder that a relative path starts from.
        source: The file that names the groups, and its key, for an error.

    Raises:
        FairnessError: there is no such key.
    """
    path = folder / Path(name).expanduser()
    return path if path.suffix in _YAML else find("groups", name, *source)


def _key_or_path(name: str) -> str:
    """A key of `data/groups`, or the absolute path of a file."""
    path = Path(name).expanduser()
    if path.suffix in _YAML:
        if not path.is_file():
            raise FairnessError(f"--groups: {name}: there is no such file; check the path")
        return str(path.resolve())
    known = yaml_files("groups")
    if name not in known:
        raise FairnessError(f"--groups: {unknown('group', name, known)}; or name a YAML file")
    return name


def questions_of(document: dict[str, Any], seed: int) -> Questions:
    """The questions of a `message_document`.

    Raises:
        FairnessError: a file is wrong, or nothing can be asked.
    """
    files = {Path(name).stem: load(Groups, groups_file(name)) for name in document["groups"]}
    messages, spans = read_messages(Path(document["file"]["path"])), document.get("spans", 1)
    questions = ask(messages, files, spans, seed)
    if spans > 1 and questions.ways < FEWEST_NAMES:
        raise FairnessError(
            f"--spans: with {spans} spans a message, a group is said in {questions.ways} ways that are used in "
            f"different messages; {FEWEST_NAMES} at least are needed to tell groups apart by words. Use a smaller "
            "--spans, or write more spans for each group"
        )
    return questions


def describe_questions(questions: Questions) -> Iterator[str]:
    """Lines for the terminal: what is asked, and what is not, with the reasons."""
    rows = questions.left_out.to_pylist()
    asked = dict.fromkeys(" ".join(dict.fromkeys(crossed)) for crossed in questions.table["groups"].to_pylist())
    groups = some(list(asked), 12)
    messages = len(questions.table["message"].unique())
    yield f"{number_of(messages, 'message')}, each about: {groups}"
    if questions.ways < FEWEST_NAMES:
        yield (
            f"the group with the fewest has {number_of(questions.ways, 'different span')}; verdicts need at least "
            f"{FEWEST_NAMES}: give each group more spans"
        )
    for reason in dict.fromkeys(row["reason"] for row in rows):
        reason_rows = [row for row in rows if row["reason"] == reason]
        names = some(list(dict.fromkeys(f"{row['message']} ({row['group']})" for row in reason_rows)), _MOST_NAMED)
        yield f"not asked: {names} ({reason})"
