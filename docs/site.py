"""What mkdocs calls when it makes the site: the first page is README.md, the API's page is made from docstrings."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).parents[1]
_OUTSIDE = re.compile(
    r"\[([^\]]+)\]\(((?:\.\./)+)((?:data|README|CITATION|CONTRIBUTING|constraints|action|templates)[^)]*)\)"
)
"""A link that leaves the folder of the documentation."""
_API = {
    "In a notebook": ("fairness_pipeline.api",),
    "A study": ("fairness_pipeline.project.study",),
    "A measure of dialogue": ("fairness_pipeline.measures.dialogue.measure",),
    "Methods of truth inference": (
        "fairness_pipeline.annotation.truth_inference.base",
        "fairness_pipeline.annotation.truth_inference.group_anno",
        "fairness_pipeline.annotation.truth_inference.dawid_skene",
    ),
    "Statistics": (
        "fairness_pipeline.statistics.comparison",
        "fairness_pipeline.statistics.verdicts",
        "fairness_pipeline.statistics.equivalence",
        "fairness_pipeline.statistics.clusters",
        "fairness_pipeline.statistics.person_level",
        "fairness_pipeline.measures.language.stereotype",
        "fairness_pipeline.measures.classifiers.group_rates",
    ),
    "An asset": (
        "fairness_pipeline.lineage.assets",
        "fairness_pipeline.lineage.run",
        "fairness_pipeline.foundation.inputs",
    ),
}


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that stand in no file of the folder, and leaves this one out."""
    for file in list(files):
        if file.src_uri == "site.py":
            files.remove(file)
    readme = (_ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=_inside(readme)))
    files.append(File.generated(config, "api.md", content=_api()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A link to a file beside the documentation becomes the file's path."""
    return _OUTSIDE.sub(lambda match: f"{match[1]} (`{match[3]}`)", markdown)


def _inside(readme: str) -> str:
    """README.md with its links as they are from within `docs`."""
    inside = re.sub(r"\]\(docs/as-in-the-paper\)", "](as-in-the-paper/dialogue-fairness.md)", readme)
    inside = inside.replace("](docs/", "](")
    return re.sub(r"\[([^\]]+)\]\(((?:data/|CONTRIBUTING|LICENSE|SECURITY)[^)]*)\)", r"\1 (`\2`)", inside)


def _api() -> str:
    parts = ["# API", "Made from the docstrings."]
    for title, modules in _API.items():
        parts += [f"## {title}", *(f"::: {module}" for module in modules)]
    return "\n\n".join(parts) + "\n"
