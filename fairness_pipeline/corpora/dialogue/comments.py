"""Reads threads of comments from Pushshift's Reddit dumps: a comment and the post it answers form a dialogue."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from fairness_pipeline.corpora.cleaning import is_deleted
from fairness_pipeline.corpora.dialogue.readers import Turns
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import explained
from fairness_pipeline.foundation.paths import cache_folder
from fairness_pipeline.foundation.text_files import read_json_lines

_POSTS = pa.schema({name: pa.string() for name in ("id", "parent", "thread", "text", "topic")})
_BATCH = 50_000
_MEMORY = "1GB"


def read_comments(paths: Iterable[Path]) -> Iterator[Turns]:
    """Pairs every comment with the comment or submission it answers, if the files hold both.

    The comments under one submission form a thread.

    The files are joined on disk, so that memory does not grow with them.

    Args:
        paths: Files of comments (`id`, `parent_id`, `link_id`, `body`) and submissions (`id`, `title`, `selftext`), in
            any order.

    Raises:
        FairnessError: a line is no comment or submission; names the file and the line.
    """
    import duckdb

    posts = (post for path in paths for post in _posts(path))
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="comments-", dir=cache) as folder:
            yield from _joined(posts, Path(folder))
    except (OSError, duckdb.Error) as error:
        raise explained(error, cache) from error


def _joined(posts: Iterator[tuple[str, ...]], folder: Path) -> Iterator[Turns]:
    import duckdb

    with duckdb.connect(str(folder / "posts.db"), config={"temp_directory": str(folder)}) as database:
        database.execute(f"set memory_limit = '{_MEMORY}'; set preserve_insertion_order = true")
        database.execute("create table posts (id text, parent text, thread text, text text, topic text)")
        while chunk := list(islice(posts, _BATCH)):
            batch = pa.table(dict(zip(_POSTS.names, zip(*chunk, strict=True), strict=True)), schema=_POSTS)
            database.register("batch", batch)
            database.execute("insert into posts select * from batch")
            database.unregister("batch")
        joined = database.execute(
            "select parent.text, child.text, child.thread, nullif(child.topic, '') from posts child join "
            "(select id, any_value(text) as text from posts group by id) parent on child.parent = parent.id "
            "order by child.rowid"
        )
        while rows := joined.fetchmany(_BATCH):
            yield from (Turns(*row) for row in rows)


def _posts(path: Path) -> Iterator[tuple[str, ...]]:
    for where, record in read_json_lines(path):
        identity = _text(where, record, "id")
        topic = str(record.get("subreddit") or "")
        if "title" in record:
            name = f"t3_{identity}"
            parts = [_text(where, record, "title"), record.get("selftext")]
            text = " ".join(part for part in parts if isinstance(part, str) and not is_deleted(part))
            yield name, "", name, text, topic
        else:
            parent, thread = _text(where, record, "parent_id"), _text(where, record, "link_id")
            yield f"t1_{identity}", parent, thread, _text(where, record, "body"), topic


def _text(where: str, record: dict[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        raise FairnessError(
            f"{where}: expected a comment (id, parent_id, link_id, body) or a submission (id, title); "
            f"'{name}' is {'missing' if value is None else type(value).__name__}"
        )
    return value
