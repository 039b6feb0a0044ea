"""The NPS Chat Corpus (Forsyth and Martell 2007): posts, the class of each post, and the ages in its chat room."""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_member

_NAME = re.compile(r".*/[\d-]+-(?P<ages>\w+)_\d+posts\.xml")


class Post(NamedTuple):
    """A post: its text, its class (`Statement`, `ynQuestion`, ...) and the ages in its room (`20s`, `teens`, ...)."""

    where: str
    text: str
    kind: str
    ages: str
    author: str | None


def read_chat_rooms(path: Path) -> Iterator[Post]:
    """Reads every post of the corpus's `.zip`.

    Raises:
        FairnessError: the file does not exist, or is not the corpus.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if _NAME.fullmatch(name)]
            if not names:
                raise FairnessError(f"{path}: expected rooms such as 10-19-20s_706posts.xml in it, found none")
            for name in names:
                match = _NAME.fullmatch(name)
                assert match
                room = ElementTree.fromstring(read_member(path, archive, name))
                for number, post in enumerate(room.iter("Post"), start=1):
                    where = f"{path}, {name}, post {number}"
                    yield Post(where, (post.text or "").strip(), post.get("class", ""), match["ages"], post.get("user"))
    except (OSError, zipfile.BadZipFile, ElementTree.ParseError) as error:
        raise FairnessError(f"{path}: cannot be read as the NPS Chat Corpus: {error}") from None
