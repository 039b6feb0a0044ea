"""What the UI shows of assets and of a corpus's texts, rendered by another Markdown library."""

from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from markdown_it import MarkdownIt

from fairness_pipeline.defs.definitions import definitions
from fairness_pipeline.defs.instance import open_instance
from fairness_pipeline.defs.metadata import _markdown, copied_columns, harmless, run_metadata
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lineage.assets import Glance, Result
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change
from fairness_pipeline_tests.conftest import Once

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
    html = (
        MarkdownIt("commonmark", {"html": True}).enable("table").render(_markdown(pa.table({"a": [text], "n": [1.5]})))
    )
    assert html.count("<table>") == 1 and html.count("<td>") == 2
    for tag in ("<img", "<a ", "<script", "<b>", "<em>", "<strong>", "<code>", "<h1", "<li>"):
        assert tag not in html
    plain = html.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert " ".join(text.split()) in " ".join(plain.replace("<br>", " ").split())


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_quoted_fetches_and_runs_nothing(text: str) -> None:
    html = MarkdownIt("commonmark", {"html": True}).render(harmless(f"**{text}** is found"))
    assert "<img" not in html and "<script" not in html


def test_a_table_without_rows_is_not_shown() -> None:
    rows = pa.table({"measure": ["length"]})
    result = Result(rows, tables={"found": rows, "without": rows.slice(0, 0)})
    assert {"found", "without"} & set(run_metadata(result, Glance(), Path("lake/t"), Path("lake"), 1.0)) == {"found"}


def test_a_copied_column_holds_the_values_of_the_table_it_is_copied_from(made: Project) -> None:
    lineage, lake = Lineage(made), Lake(made.workspace)
    copied = set()
    for name, asset in lineage.assets.items():
        for column, sources in copied_columns(lineage, asset).items() if asset.schema else ():
            for key in lineage.keys(name):
                copied_from = [source for source in lineage.sources(name, key) if source[0] in sources]
                values = {value for source in copied_from for value in lake.read(*source)[column].to_pylist()}
                assert {*lake.read(name, key)[column].to_pylist()} <= values, (name, column)
                copied.add((name, column))
    assert ("context_pairs", "dialogue_id") in copied and ("politeness", "pair_id") in copied
    assert not {column for _, column in copied} & {"difference", "p", "n"}


def test_a_copied_workspace_shows_its_own_files(made: Project, made_once: Once) -> None:
    with open_instance(made) as instance:
        for name in ("contexts", "dialogue_significance"):
            (record,) = instance.fetch_materializations(dg.AssetKey(name), limit=1).records
            metadata = record.asset_materialization.metadata
            assert (made.workspace / metadata["file"].value).is_file()
            assert str(made_once.workspace) not in str(metadata)
        node = definitions(made).get_repository_def().asset_graph.get(dg.AssetKey("contexts"))
        assert node.metadata["workspace"].value == str(made.workspace)


def test_every_asset_names_its_code_owners_and_columns(tiny: Project) -> None:
    change(tiny.path, lambda profile: profile.update(owners=["team:audit", "someone@example.com"]))
    project = Project("tiny")
    graph = definitions(project).get_repository_def().asset_graph
    for name, asset in Lineage(project).assets.items():
        if not graph.has(dg.AssetKey(name)) or not graph.get(dg.AssetKey(name)).is_materializable:
            continue
        node = graph.get(dg.AssetKey(name))
        assert list(node.owners) == ["team:audit", "someone@example.com"]
        reference = node.metadata["dagster/code_references"].code_references[0]
        lines = Path(reference.file_path).read_text(encoding="utf-8").splitlines()
        code = "\n".join(lines[reference.line_number - 1 : reference.line_number + 60])
        assert f"def {asset.function.__name__}(" in code, (name, reference)
        if asset.schema:
            assert "dagster/column_lineage" in node.metadata
    change(tiny.path, lambda profile: profile.update(owners=["audit"]))
    with pytest.raises(FairnessError, match="expected an e-mail address, or `team:` and a name, found 'audit'"):
        Project("tiny")
