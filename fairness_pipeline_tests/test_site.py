"""Builds the documentation's site, and runs its notebooks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_finds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the cells one after another in this process; the last asserts what the text claims."""
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    if any("FAIRNESS_CORPORA" in "".join(cell["source"]) for cell in cells) and not os.environ.get("FAIRNESS_CORPORA"):
        pytest.skip("FAIRNESS_CORPORA is not set: this notebook reads a real corpus")
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in cells:
        exec(compile("".join(cell["source"]), path.name, "exec"), names)
    assert "assert" in "".join(cells[-1]["source"])
    assert all(cell["execution_count"] for cell in cells)  # its outputs were made by `make notebooks`
    assert any(cell["outputs"] for cell in cells)
    assert not any(output["output_type"] == "error" for cell in cells for output in cell["outputs"])


def test_each_study_has_a_notebook() -> None:
    from fairness_pipeline.project.study import STUDIES

    assert {path.stem for path in NOTEBOOKS} == set(STUDIES)


@pytest.mark.verify
def test_the_site_is_made_without_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    folder = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list(folder.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(
            r"src=\"(?:https?:)?//|href=\"https?://[^\"]*\.(?:css|woff2?)\"", text
        )  # nothing is loaded from elsewhere
        assert str(ROOT) not in text
    api = (folder / "api.html").read_text(encoding="utf-8")
    assert "fairness_pipeline.api.compare" in api and "GroupAnno" in api
