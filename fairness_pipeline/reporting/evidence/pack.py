"""Writes an evidence pack: one document as HTML, PDF and JSON, model cards, data sheets, the signature."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import matplotlib
from fpdf import FPDF, TextStyle
from huggingface_hub import EvalResult, ModelCardData
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.reporting.evidence.facts import Facts, Subject
from fairness_pipeline.reporting.html import p_value, template

_HERE = Path(__file__).parent
_FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
_HEADINGS = {
    f"h{level}": TextStyle(font_style="B", font_size_pt=size, color="#1c1c1c", t_margin=4, b_margin=2)
    for level, size in ((1, 16), (2, 12), (3, 9))
}
_TASKS = {"model": "text-generation", "system": "text-classification", "classifier": "text-classification"}
"""Of subjects that are models, by their axis; a corpus of annotators has a data sheet alone."""


def write_pack(facts: Facts, folder: Path, signed: Path | None = None) -> list[Path]:
    """Writes the pack; returns its files, the documents first.

    Args:
        facts: What it says.
        folder: Where to; it is made.
        signed: The folder with the signed summary of the run, if there is one.
    """
    summary = signed / "summary.json" if signed else None
    body = template(_HERE, "evidence.html.j2").render(facts=facts, signed=summary.name if summary else "")
    files = [folder / "evidence.html", folder / "evidence.pdf", folder / "evidence.json"]
    _write(files[0], _page(body, facts.profile))
    with replacing(files[1]) as temporary:
        temporary.write_bytes(_pdf(body, facts.profile))
    _write(files[2], json.dumps(facts.as_json(), indent=1, ensure_ascii=False, default=str) + "\n")
    for path, text in [*_model_cards(facts, folder / "model-cards"), *_data_sheets(facts, folder / "data-sheets")]:
        _write(path, text)
        files.append(path)
    if signed:
        shutil.copytree(signed, folder / "signed", dirs_exist_ok=True)
        files += sorted((folder / "signed").iterdir())
    return files


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def _page(body: str, profile: str) -> str:
    head = template(_HERE, "frame.html.j2")
    return head.render(title=f"Evidence: {profile}", body=body)


def _pdf(body: str, profile: str) -> bytes:
    """The same document on A4, with fonts that know most alphabets."""
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
        """Page numbers."""
        self.set_y(-12)
        self.set_font("DejaVu", size=7)
        self.cell(0, 5, f"{self.title}, page {self.page_no()} of {{nb}}", align="C")


def _model_cards(facts: Facts, folder: Path) -> Iterator[tuple[Path, str]]:
    card = _markdown().get_template("model_card.md.j2")
    for subject in facts.subjects:
        if subject.kind in _TASKS:
            front = f"---\n{_front(subject, facts).to_yaml()}\n---\n\n"
            text = re.sub(r"\n{3,}", "\n\n", card.render(facts=facts, subject=subject))
            yield folder / f"{_slug(subject.study)}-{_slug(subject.name)}.md", front + text


def _front(subject: Subject, facts: Facts) -> ModelCardData:
    """The card's metadata in Hugging Face's format, each difference as a result."""
    results = [
        EvalResult(
            task_type=_TASKS[subject.kind],
            dataset_type=_slug(facts.profile),
            dataset_name=f"{subject.study}: {own.where}",
            metric_type=_slug(own.measure),
            metric_value=own.value,
            metric_name=f"{own.measure}, difference between groups ({own.verdict})",
        )
        for own in subject.verdicts
    ]
    name = subject.name if results else None
    return ModelCardData(model_name=name, eval_results=results or None, tags=["bias", "fairness", "fairness-pipeline"])


def _data_sheets(facts: Facts, folder: Path) -> Iterator[tuple[Path, str]]:
    sheet = _markdown().get_template("data_sheet.md.j2")
    for corpus in facts.corpora:
        text = re.sub(r"\n{3,}", "\n\n", sheet.render(facts=facts, corpus=corpus))
        yield folder / f"{_slug(corpus.name)}.md", text


def _markdown() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"p": p_value, "cell": lambda text: text.replace("|", "\\|").replace("\n", " ")}
    return environment


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9_.]+", "-", text.lower()).strip("-") or "unnamed"
