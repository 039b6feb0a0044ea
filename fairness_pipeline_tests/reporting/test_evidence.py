"""Checks that the evidence pack says what the tables hold, in formats that other tools read."""

import json
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from zipfile import ZipFile

import pytest
from huggingface_hub import ModelCard

from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change, command, planned, run


class Cells(HTMLParser):
    """Collects the headings of a page's tables, and the heading that each cell names."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: set[str] = set()
        self.labels: list[str | None] = []
        self._in_a_heading = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Notes a cell's label."""
        self._in_a_heading = tag == "th"
        if tag == "td":
            self.labels.append(dict(attributes).get("data-label"))

    def handle_data(self, data: str) -> None:
        """Notes a heading."""
        if self._in_a_heading and data.strip():
            self.headings.add(data.strip())

    def handle_endtag(self, tag: str) -> None:
        """Leaves a heading."""
        self._in_a_heading = False


def test_a_pack_says_what_the_tables_hold(made: Project, tmp_path: Path) -> None:
    folder = tmp_path / "pack"
    done = command("evidence", "--output", str(folder))
    assert done.returncode == 0, done.stderr
    assert "1 model card, 1 data sheet" in done.stdout and "Not signed" in done.stdout
    evidence = json.loads((folder / "evidence.json").read_text(encoding="utf-8"))
    (subject,) = evidence["subjects"]
    lake = Lake(made.workspace)
    assert evidence["rates"] == []
    assert {entry["asset"] for entry in evidence["hashes"]} >= {
        "responses",
        "dialogue_models",
        "dialogue_fairness_report",
    }
    assert all(len(entry["sha256"]) == 64 for entry in evidence["hashes"])
    page = (folder / "evidence.html").read_text(encoding="utf-8")
    assert "from which no rate of all cases can be read" in page
    for text in ("Annex IV", "No threshold of any law decides a verdict", evidence["corpora"][0]["licence"]):
        assert text in page
    for text in ("What must not be claimed", "Article 10(2)(f)", "Article 15(4)", "left open: the section evidence"):
        assert text in page
    with ZipFile(folder.with_suffix(".zip")) as archive:
        packed = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    assert packed == {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    # On a phone each cell carries the heading of its column.
    cells = Cells()
    cells.feed(page)
    assert len(cells.labels) > 100
    assert set(cells.labels) == cells.headings
    assert (folder / "evidence.pdf").read_bytes().startswith(b"%PDF-")
    # Hugging Face's own library reads the card's metadata.
    card = ModelCard.load(folder / "model-cards" / "dialogue-fairness-seq2seq.md")
    results = card.data.eval_results
    assert results is not None and card.data.model_name == "seq2seq"
    assert len(results) == len(subject["verdicts"])
    values = {(result.dataset_name, result.metric_type): result.metric_value for result in results}
    assert len(values) == len(results)  # each dimension is a data set of its own
    assert {name.partition(",")[0] for name, _ in values} == {"Dialogue fairness: gender", "Dialogue fairness: dialect"}
    significance = lake.read("dialogue_significance", {"dimension": "gender", "model": "seq2seq"}).to_pylist()
    row = next(row for row in significance if row["measure"] == "length")
    assert values["Dialogue fairness: gender, male − female", "length"] == pytest.approx(row["difference"])
    assert "## Bias, Risks, and Limitations" in card.text


def test_a_selection_says_what_it_leaves_out(made: Project, tmp_path: Path) -> None:
    done = command("evidence", "--dimension", "gender", "--output", str(tmp_path / "pack"))
    assert done.returncode == 0, done.stderr
    assert "1 other audit of the profile left out" in done.stdout
    evidence = json.loads((tmp_path / "pack" / "evidence.json").read_text(encoding="utf-8"))
    assert evidence["left_out"] == 1
    assert {verdict["where"] for verdict in evidence["subjects"][0]["verdicts"]} == {"gender"}
    assert not any("dialect" in entry["partition"] for entry in evidence["hashes"])
    assert any(entry["asset"] == "dialogue_models" for entry in evidence["hashes"])  # what the audit was made from
    assert "This pack is a selection" in (tmp_path / "pack" / "evidence.html").read_text(encoding="utf-8")
    nothing = command("evidence", "--study", "outcomes", "--output", str(tmp_path / "none"))
    assert nothing.returncode == 1 and not (tmp_path / "none").exists()


def test_foreign_names_are_escaped(made: Project, data: Path, tmp_path: Path) -> None:
    path = data / "profiles" / "tiny.yaml"
    path.write_text(path.read_text().replace("description: ", "description: <script>alert(1)</script> & ", 1))
    folder = tmp_path / "pack"
    assert command("evidence", "--output", str(folder)).returncode == 0
    page = (folder / "evidence.html").read_text(encoding="utf-8")
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page


def test_a_signed_run_and_what_is_out_of_date(made: Project, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = tmp_path / "key.pem"
    private = Ed25519PrivateKey.generate()
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    assert run("--sign", str(key)).returncode == 0
    folder = tmp_path / "pack"
    done = command("evidence", "--output", str(folder))
    assert "Not signed" not in done.stdout
    assert {path.name for path in (folder / "signed").iterdir()} >= {"summary.json"}
    assert "signed/summary.json beside this file" in (folder / "evidence.html").read_text(encoding="utf-8")
    assert "This pack is not signed" in (folder / "evidence.html").read_text(encoding="utf-8")
    listed = json.loads((folder / "manifest.json").read_bytes())["files"]
    assert listed == {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    # A signed pack is checked as a whole.
    public = tmp_path / "public.pem"
    public.write_bytes(private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    checks = ("check", "--signed", str(folder / "manifest.json"), "--key", str(public))
    assert command("evidence", "--output", str(folder), "--sign", str(key)).returncode == 0
    assert command(*checks).returncode == 0
    counts = json.loads((folder / "evidence.json").read_bytes())
    in_pack = Counter(entry["verdict"] for subject in counts["subjects"] for entry in subject["verdicts"])
    signed = json.loads((folder / "signed" / "summary.json").read_bytes())
    assert in_pack == Counter(row["verdict"] for row in signed["verdicts"])
    for name, damage in (
        ("evidence.json", lambda path: path.write_text(path.read_text().replace("inconclusive", "fair"))),
        ("data-sheets/tiny.md", Path.unlink),
        ("more.html", lambda path: path.write_text("more")),
    ):
        before = (folder / name).read_bytes() if (folder / name).exists() else b""
        damage(folder / name)
        done = command(*checks)
        assert done.returncode == 1
        assert f"{name}: " in done.stdout
        (folder / name).write_bytes(before)
    (folder / "more.html").unlink()
    assert command("evidence", "--output", str(folder)).returncode == 0
    assert "manifest.json: not signed" in command(*checks).stderr  # the signature of the earlier files is deleted
    (folder / "linked").symlink_to(tmp_path)
    done = command("evidence", "--output", str(folder), "--sign", str(key))
    assert (done.returncode, "linked: is in " in done.stdout) == (0, True)
    assert command(*checks).returncode == 1
    (folder / "linked").unlink()
    page = (folder / "evidence.html").read_text(encoding="utf-8")
    assert "no gate was asked: nothing says that these verdicts pass" in page
    flip = next((made.workspace / "tables" / "dialogue_significance").rglob("*.parquet"))
    content = bytearray(flip.read_bytes())
    content[99] ^= 1
    flip.write_bytes(content)
    refused = command("evidence", "--output", str(folder), "--sign", str(key))
    assert (refused.returncode, "not as written" in refused.stderr) == (1, True)
    content[99] ^= 1
    flip.write_bytes(content)
    (made.workspace / "tables" / "sentiment" / "dimension=gender" / "model=seq2seq" / "part-0.parquet").unlink()
    (folder / "model-cards" / "gone.md").write_text("of a model that was there")
    done = command("evidence", "--output", str(folder))
    assert "verdicts out of date, and marked" in done.stdout
    assert "changed since the run was signed" in done.stdout
    card = folder / "model-cards" / "dialogue-fairness-seq2seq.md"
    for page in (folder / "evidence.html", card):
        assert "(out of date)" in page.read_text(encoding="utf-8")
    assert "partitions have changed since" in (folder / "evidence.html").read_text(encoding="utf-8")
    assert {result.dataset_name.partition(",")[0] for result in ModelCard.load(card).data.eval_results} == {
        "Dialogue fairness: dialect"
    }
    assert not (folder / "model-cards" / "gone.md").exists()
    refused = command("evidence", "--output", str(tmp_path))
    assert refused.returncode == 1 and "holds something else" in refused.stderr


def test_nothing_measured_says_what_to_do(tiny: Project) -> None:
    done = command("evidence")
    assert done.returncode == 1 and "fairness-pipeline run --profile" in done.stderr


def test_stated_facts_are_shown_and_make_nothing_stale(made: Project, data: Path, tmp_path: Path) -> None:
    stated = {"purpose": "answers customers", "responsible": "A. Auditor", "data_period": "2026, May to June"}
    change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(evidence=stated))
    assert not planned()
    assert command("evidence", "--output", str(tmp_path / "pack")).returncode == 0
    page = (tmp_path / "pack" / "evidence.html").read_text(encoding="utf-8")
    assert all(value in page for value in stated.values()) and "left open: the section" not in page
    (card,) = (tmp_path / "pack" / "model-cards").iterdir()
    assert "## Uses\n\nanswers customers" in card.read_text(encoding="utf-8")
