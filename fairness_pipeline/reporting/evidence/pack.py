"""Writes an evidence pack: one document as HTML, PDF and JSON, model cards, data sheets, the signature."""

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import matplotlib
from fpdf import FPDF, TextStyle
from huggingface_hub import EvalResult, ModelCardData
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing, write_text
from fairness_pipeline.reporting.evidence.facts import Facts, Subject
from fairness_pipeline.reporting.evidence.manifest import write_manifest
from fairness_pipeline.reporting.html import p_value, template, without_controls
from fairness_pipeline.reporting.rule import Gate

_HERE = Path(__file__).parent
_FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
_JSON = "evidence.json"
_HEADINGS = {
    f"h{level}": TextStyle(font_style="B", font_size_pt=size, color="#1c1c1c", t_margin=4, b_margin=2)
    for level, size in ((1, 16), (2, 12), (3, 9))
}
_TASKS = {"model": "text-generation", "system": "text-classification", "classifier": "text-classification"}
"""Tasks of the subjects that are models, by axis; a corpus of annotators has only a data sheet."""


def write_pack(
    facts: Facts,
    folder: Path,
    signed: Path | None = None,
    gate: Gate | None = None,
    changed: int = 0,
    *,
    signs: bool = False,
) -> list[Path]:
    """Writes the pack; returns its files, the documents first, the manifest last.

    Args:
        facts: Its content.
        folder: The folder to write to; it is made. Files of an earlier pack are replaced.
        signed: The folder with the signed summary of a run, if there is one.
        gate: The outcome of its gate.
        changed: The number of partitions that are not as they were signed.
        signs: Whether the manifest is signed next.

    Raises:
        FairnessError: the folder holds something else.
    """
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / _JSON).exists())):
        raise FairnessError(f"--output: {folder} holds something else; name a new folder, or one of an earlier pack")
    for name in ("model-cards", "data-sheets", "signed"):
        shutil.rmtree(folder / name, ignore_errors=True)
    body = template(_HERE, "evidence.html.j2").render(facts=facts, signed=_signature(gate, changed), signs=signs)
    files = [folder / "evidence.html", folder / "evidence.pdf", folder / _JSON]
    write_text(files[0], _page(body, facts.profile), errors="replace")
    with replacing(files[1]) as temporary:
        temporary.write_bytes(_pdf(body, facts.profile))
    figures = json.dumps(facts.as_json(), indent=1, ensure_ascii=False, default=str)
    write_text(files[2], figures + "\n", errors="replace")
    for path, text in [*_model_cards(facts, folder / "model-cards"), *_data_sheets(facts, folder / "data-sheets")]:
        write_text(path, text, errors="replace")
        files.append(path)
    if signed:
        shutil.copytree(signed, folder / "signed", dirs_exist_ok=True)
        files += sorted((folder / "signed").iterdir())
    return [*files, write_manifest(folder, files, facts.profile)]


def write_archive(folder: Path, files: Iterable[Path]) -> Path:
    """Writes all files of a pack into one ZIP file beside its folder; returns its path.

    Args:
        folder: The pack's folder.
        files: Its files, with the signature of its manifest where it is signed.
    """
    path = folder.absolute().with_name(f"{folder.absolute().name}.zip")
    with replacing(path) as temporary, ZipFile(temporary, "w", ZIP_DEFLATED) as archive:
        for file in sorted(files):
            archive.write(file, f"{folder.absolute().name}/{file.relative_to(folder).as_posix()}")
    return path


def _signature(gate: Gate | None, changed: int) -> str:
    if not gate:
        return "The run behind it is not signed; fairness-pipeline run --sign KEYFILE signs one."
    summary = f"signed/summary.json beside this file (check --signed checks it): {gate.description}."
    if changed:
        return (
            f"A run is signed, but {changed} partitions have changed since, so not all that stands here is: {summary}"
        )
    return f"The run behind it is signed: {summary}"


def _page(body: str, profile: str) -> str:
    frame = template(_HERE, "frame.html.j2")
    return frame.render(title=f"Evidence: {profile}", body=body)


def _pdf(body: str, profile: str) -> bytes:
    """Returns the document on A4. DejaVu has Latin, Greek, Cyrillic, Arabic and Hebrew, no Chinese or Indic letters."""
    pdf = _Document(format="A4")
    for style, file in (("", "DejaVuSans.ttf"), ("B", "DejaVuSans-Bold.ttf"), ("I", "DejaVuSans-Oblique.ttf")):
        pdf.add_font("DejaVu", style, str(_FONTS / file))
    pdf.set_title(f"Evidence: {profile}")
    pdf.set_font("DejaVu", size=8)
    pdf.add_page()
    pdf.write_html(body, font_family="DejaVu", table_line_separators=True, tag_styles=_HEADINGS)
    return bytes(pdf.output())


class _Document(FPDF):
    def footer(self) -> None:
        """Writes page numbers."""
        self.set_y(-12)
        self.set_font("DejaVu", size=7)
        self.cell(0, 5, f"{self.title}, page {self.page_no()} of {{nb}}", align="C")


def _model_cards(facts: Facts, folder: Path) -> Iterator[tuple[Path, str]]:
    card = _markdown().get_template("model_card.md.j2")
    for subject in facts.subjects:
        if subject.kind in _TASKS and subject.verdicts:
            front = f"---\n{_front(subject, facts).to_yaml()}\n---\n\n"
            text = re.sub(r"\n{3,}", "\n\n", card.render(facts=facts, subject=subject))
            yield folder / f"{_slug(subject.study)}-{subject.name}.md", front + text


def _front(subject: Subject, facts: Facts) -> ModelCardData:
    """Returns the card's metadata in Hugging Face's format, each difference as a result."""
    results = [
        EvalResult(
            task_type=_TASKS[subject.kind],
            dataset_type=_slug(f"{facts.profile} {verdict.where}"),
            dataset_name=f"{subject.study}: {verdict.where}, {verdict.groups[0]} − {verdict.groups[1]}",
            metric_type=_slug(verdict.measure),
            metric_value=verdict.value,
            metric_name=f"{verdict.measure}, difference between groups ({verdict.verdict})",
        )
        for verdict in subject.verdicts
        if not verdict.stale
    ]
    name = subject.name if results else None
    return ModelCardData(model_name=name, eval_results=results or None, tags=["bias", "fairness", "fairness-pipeline"])


def _data_sheets(facts: Facts, folder: Path) -> Iterator[tuple[Path, str]]:
    sheet = _markdown().get_template("data_sheet.md.j2")
    for corpus in facts.corpora:
        text = re.sub(r"\n{3,}", "\n\n", sheet.render(facts=facts, corpus=corpus))
        yield folder / f"{corpus.name}.md", text  # the name is a key, so that it is safe in a path


def _markdown() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        undefined=StrictUndefined,
        finalize=without_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"p": p_value, "cell": _cell}
    return environment


def _cell(text: str) -> str:
    """Returns text on one line in which nothing ends a table's cell or a code span."""
    return " ".join(text.replace("|", "\\|").replace("`", "'").replace("<", "‹").split())


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9_.]+", "-", text.lower()).strip("-") or "unnamed"
