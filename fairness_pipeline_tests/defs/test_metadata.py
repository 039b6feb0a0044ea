"""What the UI shows of a corpus, through another library's Markdown."""

from pathlib import Path

import pyarrow as pa
import pytest
from markdown_it import MarkdownIt

from fairness_pipeline.defs.metadata import _markdown, harmless, run_metadata
from fairness_pipeline.lineage.assets import Glance, Result

HOSTILE = [
    "![x](http://127.0.0.1:9/beacon.png)",
    "<img src=http://127.0.0.1:9/x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "[press me](javascript:alert(1))",
    "a | b | <b>",
    "`code` *bold* _slanted_ ~~gone~~ \\![y](z)",
    "line\n\n# heading\n\n- item",
    "[r]: http://evil.example\n\n![r][r]",
    "![r]\\\n(http://127.0.0.1:9/beacon.png)",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_cell_is_shown_as_it_stands(text: str) -> None:
    shown = (
        MarkdownIt("commonmark", {"html": True}).enable("table").render(_markdown(pa.table({"a": [text], "n": [1.5]})))
    )
    assert shown.count("<table>") == 1 and shown.count("<td>") == 2
    for tag in ("<img", "<a ", "<script", "<b>", "<em>", "<strong>", "<code>", "<h1", "<li>"):
        assert tag not in shown
    plain = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert " ".join(text.split()) in " ".join(plain.replace("<br>", " ").split())


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_quoted_fetches_and_runs_nothing(text: str) -> None:
    shown = MarkdownIt("commonmark", {"html": True}).render(harmless(f"**{text}** is found"))
    assert "<img" not in shown and "<script" not in shown


def test_a_table_without_rows_is_not_shown() -> None:
    rows = pa.table({"measure": ["length"]})
    result = Result(rows, tables={"found": rows, "without": rows.slice(0, 0)})
    assert {"found", "without"} & set(run_metadata(result, Glance(), Path("nowhere"), 1.0)) == {"found"}
