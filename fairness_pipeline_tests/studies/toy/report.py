"""The report of the toy study."""

from pathlib import Path

from fairness_pipeline.reporting.html import template
from fairness_pipeline.reporting.plots import COLOURS
from fairness_pipeline.reporting.results import Audit


def render(audits: list[Audit]) -> str:
    """All audits, one line each."""
    return template(Path(__file__).parent, "report.html.j2").render(audits=audits, colours=COLOURS)
