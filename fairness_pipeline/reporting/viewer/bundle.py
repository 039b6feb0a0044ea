"""Writes the viewer's folder: one page, and the pairs as scripts, which a browser loads from disk too."""

import base64
import html
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from fairness_pipeline import __version__
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import explained, replacing, write_text
from fairness_pipeline.foundation.leases import leased
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.foundation.text_files import parse_json
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.state import State
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.results import Audit, audits_of, gravest, severity, shown_verdict
from fairness_pipeline.reporting.samples import SAMPLE, Samples
from fairness_pipeline.reporting.viewer.address import folder_of, slug
from fairness_pipeline.statistics.units import with_unit
from fairness_pipeline.statistics.verdicts import FINDINGS
from fairness_pipeline.workspace.lake import Key, Lake, Row

PAGE = 1000
"""The number of pairs in one script."""
_HERE = Path(__file__).parent
LEASE = ".lease"
"""A folder of this name marks the folder of the pairs as the viewer's, before anything else is written."""
_FORMAT = "1"
"""The version of the scripts' format; a new one makes all of them anew."""


@dataclass(frozen=True)
class Built:
    """A viewer.

    Args:
        page: Its page.
        sets: The number of audits that it shows.
        pairs: The number of pairs.
        stale: The number of audits that it leaves out because they are out of date.
    """

    page: Path
    sets: int
    pairs: int
    stale: int


def build(
    lineage: Lineage, lake: Lake, folder: Path, against: Path | None = None, progress: Progress | None = None
) -> Built:
    """Writes the viewer of all measured audits that are up to date. Pairs that the folder holds are kept.

    Args:
        lineage: The profile's lineage.
        lake: Its lake.
        folder: The folder to write to.
        against: The viewer of an earlier run, whose pairs can be read beside these.
        progress: Receives the number of audits that are written.

    Raises:
        FairnessError: nothing was measured, or `against` is no viewer.
    """
    project, data = lineage.project, folder / "data"
    earlier = _catalogue_of(against) if against else None
    measured, stale = _measured(lineage, lake)
    if not measured:
        raise FairnessError(
            "no pairs to show: nothing was measured, or all of it is out of date; run: "
            f"fairness-pipeline run --profile {project.name}"
        )
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise explained(error, data) from None
    with leased(data / LEASE):  # two commands at once would remove each other's files
        sets = []
        for done, (study, audit) in enumerate(measured):
            report(progress, done, len(measured), audit.name)
            sets.append(_set(study, project, lake, audit, data))
        report(progress, len(measured), len(measured), "")
        pairs = sum(entry["n"] for entry in sets)
        if earlier and against:
            sets += _copied(earlier, against / "data", data)
        catalogue = {
            "profile": project.name,
            "description": project.profile.description,
            "version": __version__,
            "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "page": PAGE,
            "sets": sets,
        }
        _write_page(folder, catalogue)
        _clean(data, {entry["folder"] for entry in sets} | {LEASE})
    return Built(folder / "index.html", len(measured), pairs, stale)


def _write_page(folder: Path, catalogue: dict[str, Any]) -> None:
    for name in ("viewer.js", "viewer.css"):
        with replacing(folder / name) as temporary:
            shutil.copyfile(_HERE / name, temporary)
    page = (_HERE / "index.html").read_text(encoding="utf-8")
    write_text(folder / "index.html", page.replace("{title}", html.escape(f"Pairs: {catalogue['profile']}")))
    _script(folder / "data" / "catalogue.js", "catalogue", catalogue)


def _measured(lineage: Lineage, lake: Lake) -> tuple[list[tuple[AnyStudy, Audit]], int]:
    """Returns the audits whose pairs can be shown, and the number of those that are out of date."""
    project, state = lineage.project, State(lineage, lake)
    measured = [
        (study, audit)
        for study in project.studies
        if study.load("samples")
        for audit in audits_of(study, project.parts[study.name], lake)
        if audit.measured and _was_asked(study, lineage, lake, audit.key)
    ]
    current = [(study, audit) for study, audit in measured if not state.stale(study.table, audit.key)]
    return sorted(current, key=lambda entry: gravest(*entry)), len(measured) - len(current)


def _was_asked(study: AnyStudy, lineage: Lineage, lake: Lake, key: Key) -> bool:
    asked_key = {axis: key[axis] for axis in lineage.assets[study.asked].axes}
    return lake.card(study.asked, asked_key) is not None


def _set(study: AnyStudy, project: Project, lake: Lake, audit: Audit, data: Path) -> dict[str, Any]:
    """Returns the catalogue's entry of an audit; writes its pairs unless they exist."""
    part, card, module = project.parts[study.name], audit.card, study.load("samples")
    assert card is not None and module is not None
    content = sha256(f"{_FORMAT} {card.content} {card.fingerprint}".encode()).hexdigest()[:12]
    target = data / f"{folder_of(study, audit.key)}-{content}"
    rows, entry = _verdicts(study, project, audit), target / "entry.json"
    if not entry.exists():
        _write_pairs(module.samples(part, lake, audit.key), rows, target)
    return {
        "folder": target.name,
        "title": study.title,
        "key": audit.key,
        "subject": audit.key[study.subject],
        "groups": _groups(rows, study.groups(part, audit.key)),
        "degenerate": audit.degenerate,
        "verdicts": rows,
        "run": "",
        **json.loads(entry.read_bytes()),
    }


def _groups(rows: list[dict[str, Any]], default: tuple[str, str]) -> list[str]:
    """Returns the names of both sides: those that all rows share, or else those of the study."""
    named = {tuple(row["groups"]) for row in rows}
    return list(named.pop() if len(named) == 1 else default)


def _verdicts(study: AnyStudy, project: Project, audit: Audit) -> list[dict[str, Any]]:
    """Returns the rows that count, the worst first, one of each measure."""
    part, column = project.parts[study.name], study.identity[len(study.axes)]
    by_measure: dict[str, dict[str, Any]] = {}
    for row in sorted(filter(study.gated, audit.rows), key=severity(study)):
        groups = study.compared(part, audit.key, row)
        by_measure.setdefault(
            row[column],
            {
                "measure": row[column],
                "label": study.label(row),
                "verdict": shown_verdict(row),
                "difference": with_unit(study.decisive(row)),
                "sign": int(np.sign(study.decisive(row)["difference"])),
                "groups": list(groups),
                "finding": _finding(study, project, audit.key, row),
            },
        )
    return list(by_measure.values())


def _finding(study: AnyStudy, project: Project, key: Key, row: Row) -> str:
    return study.finding(project.parts[study.name], key, row) if shown_verdict(row) in FINDINGS else ""


def _write_pairs(samples: Samples, rows: list[dict[str, Any]], folder: Path) -> None:
    """Writes the pairs; those that show a finding come first."""
    known = {name: sides for name, sides in samples.values.items() if np.isfinite(sides).any()}
    values = {name: known[name] for name in dict.fromkeys([*(row["measure"] for row in rows), *known]) if name in known}
    signs = {row["measure"]: row["sign"] for row in rows if row["verdict"] in FINDINGS}
    order = _order(values, signs, samples.pairs.num_rows)
    pairs = samples.pairs.take(order)
    values = {name: (a[order], b[order]) for name, (a, b) in values.items()}
    words, codes = np.unique(np.array(pairs["word"].fill_null("").to_pylist(), dtype=str), return_inverse=True)
    temporary = folder.with_name(folder.name + ".part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    index = {
        "ids": pairs["id"].to_pylist(),
        "words": words.tolist(),
        "word": _packed(codes.astype("<u2" if len(words) < 1 << 16 else "<u4")),
        "wide": len(words) >= 1 << 16,
        "gaps": {name: _packed(_gaps(_gap(*sides))) for name, sides in values.items()},
    }
    _script(temporary / "index.js", "index", [folder.name, index])
    for number, page in enumerate(_pages(pairs, values)):
        _script(temporary / f"{number}.js", "pairs", [folder.name, number, page])
    counts = {"n": pairs.num_rows, "measures": list(values)}
    (temporary / "entry.json").write_text(json.dumps(counts), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def _order(values: dict[str, tuple[np.ndarray, np.ndarray]], signs: dict[str, int], count: int) -> np.ndarray:
    """Sorts pairs by how much they show of the worst finding, on its side, then of the next; then of other differences.

    Args:
        values: By measure, the worst first.
        signs: Which side has more, of those that are biased: 1 is side a, -1 side b, 0 neither.
        count: The number of pairs.
    """
    gaps = {name: np.nan_to_num(_gap(*sides)) for name, sides in values.items()}
    first = [sign * gaps[name] if sign else np.abs(gaps[name]) for name, sign in signs.items() if name in gaps]
    others = [np.abs(gap) / (np.abs(gap).max() or 1) for name, gap in gaps.items() if count and name not in signs]
    keys = [*first, np.sum(others, axis=0) if others else np.zeros(count)]
    return np.lexsort([np.arange(count), *(-key for key in reversed(keys))])


def _gap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns side a minus side b; a side that a text does not have counts 0."""
    return np.where(np.isnan(a) & np.isnan(b), np.nan, np.nan_to_num(a) - np.nan_to_num(b))


def _gaps(difference: np.ndarray) -> np.ndarray:
    """Returns differences in 127 steps either way, none rounded to 0; -128 where there is no difference."""
    largest = np.nanmax(np.abs(difference)) if np.isfinite(difference).any() else 0.0
    steps = np.nan_to_num(np.sign(difference) * np.ceil(np.abs(difference) / (largest or 1) * 127))
    return np.where(np.isfinite(difference), steps, -128).astype(np.int8)


def _packed(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.tobytes()).decode()


def _pages(pairs: Any, values: dict[str, tuple[np.ndarray, np.ndarray]]) -> Iterator[dict[str, Any]]:
    columns = [name for name in SAMPLE.names if name not in ("id", "word")]
    for start in range(0, pairs.num_rows, PAGE):
        page = pairs.slice(start, PAGE)
        yield {
            **{name: page[name].to_pylist() for name in columns},
            "values": {name: [_short(side[start : start + PAGE]) for side in sides] for name, sides in values.items()},
        }


def _short(numbers: np.ndarray) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in numbers]


def _script(path: Path, name: str, content: Any) -> None:
    """Writes a script that hands its content to the viewer. Nothing in it can end the script or start another."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    write_text(path, f"viewer.{name}({text});\n", errors="replace")


def _catalogue_of(folder: Path) -> dict[str, Any]:
    path = folder / "data" / "catalogue.js"
    try:
        text = path.read_text(encoding="utf-8")
        catalogue: dict[str, Any] = parse_json(text.removeprefix("viewer.catalogue(").removesuffix(");\n"))
        names = [entry["folder"] for entry in catalogue["sets"] if isinstance(entry["run"], str)]
        if (
            catalogue["page"] != PAGE
            or not isinstance(catalogue["made"], str)
            or any(name != slug(name, 200) for name in names)
        ):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        raise FairnessError(
            f"--against: expected the folder of a viewer, found {folder}; write one with: "
            "fairness-pipeline view --output FOLDER"
        ) from None
    return catalogue


def _copied(earlier: dict[str, Any], source: Path, data: Path) -> Iterator[dict[str, Any]]:
    """Copies the audits of an earlier viewer beside those of this one; yields their entries."""
    for entry in earlier["sets"]:
        if entry["run"]:  # of a still earlier run
            continue
        if not (data / entry["folder"]).exists():
            shutil.copytree(source / entry["folder"], data / entry["folder"])
        yield {**entry, "run": earlier["made"]}


def _clean(data: Path, kept: set[str]) -> None:
    """Removes what the page does not show any more."""
    for folder in data.iterdir():
        if folder.is_dir() and folder.name not in kept:
            shutil.rmtree(folder)
