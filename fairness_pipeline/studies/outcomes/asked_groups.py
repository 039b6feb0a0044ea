"""Messages and groups as a user names them on the command line, before a table is kept."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairness_pipeline.corpora.outcomes.formats.messages import answers_in
from fairness_pipeline.corpora.outcomes.formats.shared import check_ids
from fairness_pipeline.corpora.outcomes.groups import Groups
from fairness_pipeline.corpora.outcomes.messages import read_messages
from fairness_pipeline.corpora.outcomes.questions import Questions, ask
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file, yaml_files
from fairness_pipeline.foundation.plain_text import some
from fairness_pipeline.foundation.yaml_files import load, read_yaml
from fairness_pipeline.project.project import find

_TODAY = "today"
_SHOWN = 3


def message_document(groups: str, messages: str | None, spans: int | None) -> dict[str, Any]:
    """What a table's file says of messages that are asked about groups.

    Args:
        groups: Keys of `data/groups` or YAML files, with commas between.
        messages: A key of `data/messages`, or a file; by default the messages of today, of guises those for them.
        spans: With how many spans of a group each message is asked.

    Raises:
        FairnessError: there is no such file.
    """
    names = [_place(name) for name in groups.split(",")]
    known = yaml_files("messages")
    path = known.get(messages or (names[0] if names[0] in known else _TODAY)) or Path(str(messages)).expanduser()
    if not path.is_file():
        raise FairnessError(f"--messages: {messages}: no such file, and none of {', '.join(known)}")
    shipped = read_yaml(data_file("tables/messages.yaml"))
    asked = {"groups": names, "file": {"path": str(path.resolve())}, **({"spans": spans} if spans else {})}
    return {**shipped, **asked}


def _place(name: str) -> str:
    """A key of `data/groups`, or the whole path of a file."""
    path = Path(name).expanduser()
    if path.suffix == ".yaml":
        if not path.is_file():
            raise FairnessError(f"--groups: {name}: there is no such file; check the path")
        return str(path.resolve())
    known = yaml_files("groups")
    if name not in known:
        raise FairnessError(f"--groups: unknown group '{name}'; known: {', '.join(known)}; or name a YAML file")
    return name


def questions_of(document: dict[str, Any], seed: int) -> Questions:
    """The questions of a document.

    Args:
        document: As `message_document` makes it.
        seed: The profile's.

    Raises:
        FairnessError: a file is wrong, or nothing can be asked.
    """
    places = {Path(name).stem: Path(name) for name in document["groups"]}
    files = {key: load(Groups, path if path.suffix == ".yaml" else find("groups", key)) for key, path in places.items()}
    messages = read_messages(Path(document["file"]["path"]))
    return ask(messages, files, document.get("spans", 1), seed)


def check_answers(path: Path, questions: Any) -> None:
    """Raises FairnessError if a file does not answer the questions, a table of `GROUP_QUESTIONS`."""
    check_ids(answers_in(path), set(questions["id"].to_pylist()), f"{path}: id", "the questions (export-questions)")


def told_of(questions: Questions) -> Iterator[str]:
    """What is asked, and what is not, with the reasons, for the terminal."""
    rows = questions.left_out.to_pylist()
    asked = dict.fromkeys(" ".join(dict.fromkeys(own)) for own in questions.table["groups"].to_pylist())
    groups = some(list(asked), 12)
    messages = len(questions.table["message"].unique())
    yield f"{messages} messages, each about: {groups}"
    for reason in dict.fromkeys(row["reason"] for row in rows):
        own = [row for row in rows if row["reason"] == reason]
        names = some(list(dict.fromkeys(f"{row['message']} ({row['group']})" for row in own)), _SHOWN)
        yield f"not asked, as {reason}: {names}"
