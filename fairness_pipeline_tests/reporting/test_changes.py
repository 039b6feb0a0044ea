"""Compares two runs: pairs are matched by their texts, and a baseline must be what was signed."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.baselines import find_baseline, write_baseline
from fairness_pipeline.reporting.changes import Changed, _over_pairs, corrected
from fairness_pipeline.reporting.gaps import Gaps, _numbers, gaps_in, gaps_table
from fairness_pipeline.reporting.results import Audit, audits_of
from fairness_pipeline.statistics.change import Change
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline.workspace.signatures import private_key, sign
from fairness_pipeline_tests.workspace.test_signatures import pair


def _gaps(texts: list[str], differences: list[float], on_a: np.ndarray | None = None) -> Gaps:
    return Gaps(_numbers((text, text) for text in texts), on_a, {"x": np.array(differences)}, ())


def test_pairs_are_matched_by_their_texts() -> None:
    """In another order, and among others; a text asked twice is two pairs; a missing value leaves a pair out."""
    texts = [f"context {i}" for i in range(40)]
    first = _gaps([*texts, "same", "same", "lost"], [*[1.0] * 40, 3.0, 4.0, np.nan])
    second = _gaps(["same", "new", "same", *reversed(texts), "lost"], [3.0, 9.0, 4.0, *[0.5] * 40, 1.0])
    comparison = _over_pairs(second, first, "x", {"unit": "count_per_response"})
    assert comparison is not None
    change, basis = comparison
    assert (basis, change.before, change.after) == ("42 same pairs", pytest.approx(47 / 42), pytest.approx(27 / 42))
    assert _over_pairs(second, _gaps(["other"], [1.0]), "x", {"unit": "score"}) is None
    percent = _over_pairs(second, first, "x", {"unit": "percent"})
    assert percent is not None and percent[0].before == pytest.approx(100 * 47 / 42)


def _changed(then: str | None, now: str, change: Change | None, study: AnyStudy) -> Changed:
    rows: list[dict[str, Any] | None] = [
        verdict
        and {
            "verdict": verdict,
            "note": "",
            "p_holm": 0.001,
            "value_a": 1.0,
            "value_b": 2.0,
            "unit": "percent",
            "measure": "length",
        }
        for verdict in (then, now)
    ]  # type: ignore[misc]
    assert rows[1]
    return Changed(study, Audit({"dimension": "gender", "model": "m"}, []), rows[1], rows[0], change, "400 same pairs")


def test_what_is_worse(tiny: Project) -> None:
    """A gap that is shown to be larger, unless it is shown to be small; or a new finding that no test can compare."""
    study, grown = tiny.studies[0], Change(2.0, 9.0, 7.0, 4.0, 10.0, "", 0.001)
    shrunk, unclear = Change(-9.0, -2.0, -7.0, -10.0, -4.0, "", 0.001), Change(2.0, 3.0, 1.0, -1.0, 3.0, "", 0.3)
    cases = [
        ("biased", "biased", grown, True), ("fair", "fair", grown, False), ("inconclusive", "inconclusive", grown, True),
        ("inconclusive", "biased", unclear, False), ("biased", "fair", shrunk, False), ("biased", "biased", None, False),
        ("inconclusive", "differs", None, True), ("differs", "differs", None, False), (None, "biased", None, True),
    ]  # fmt: skip
    changes = corrected([_changed(*case[:3], study) for case in cases], 0.05)
    assert [changed.worse for changed in changes] == [case[3] for case in cases]
    sentence = changes[4].sentence
    assert sentence == (
        "gender × m Length: biased -> fair; the gap shrank by 7 points (4 to 10), from 9 to 2, 400 same pairs"
    )
    assert "no change of the gap is shown: +1 points (-1 to 3)" in changes[3].description


def test_a_baseline_is_what_was_signed(made: Project, tmp_path: Path) -> None:
    lake, (study,) = Lake(made.workspace), made.studies
    audits = audits_of(study, made.parts[study.name], lake)
    path, (private, public) = tmp_path / "main.json", pair(tmp_path)
    write_baseline(path, made, lake, [(study, audit) for audit in audits])
    with pytest.raises(FairnessError, match="main.json: not signed: there is no main.json.sig"):
        find_baseline(made, str(path), public)
    sign(path, private_key(private))
    earlier = find_baseline(made, str(path), public)(study)
    assert earlier.name.startswith("main.json, made 20")
    assert {row["measure"] for row in earlier.rows} == {
        row["measure"] for audit in audits for row in audit.rows if study.gated(row)
    }
    table = gaps_table(study, made, lake, audits)
    assert table is not None and earlier.gaps is not None
    for audit in audits:
        current, baseline = gaps_in(table, audit.key), gaps_in(earlier.gaps, audit.key)
        assert current and baseline and current.pairs.tolist() == baseline.pairs.tolist()
        assert current.differences.keys() == baseline.differences.keys()
        for name, values in current.differences.items():
            assert values == pytest.approx(baseline.differences[name], rel=1e-5, nan_ok=True)
    path.write_text(path.read_text(encoding="utf-8").replace("gender", "dialect"), encoding="utf-8")
    with pytest.raises(FairnessError, match=r"main.json: not signed with the key of .*, or changed since"):
        find_baseline(made, str(path), public)
    with pytest.raises(FairnessError, match="the signature is that of a file, and 'previous' is none"):
        find_baseline(made, "previous", public)


def test_a_text_belongs_to_one_side(made: Project) -> None:
    on_a = np.arange(60) % 2 == 0
    texts = [f"text {i}" for i in range(60)]
    first, second = (_gaps(texts, values, on_a) for values in ([0.0] * 60, [float(on_side_a) for on_side_a in on_a]))
    comparison = _over_pairs(second, first, "x", {"unit": "percent"})
    assert comparison is not None
    assert (comparison[1], comparison[0].before, comparison[0].after) == ("60 same texts", 0.0, 100.0)
    table = pa.table({"corpus": ["c"] * 60, "pair": first.pairs, "on_a": on_a, "x": first.differences["x"]})
    selected = gaps_in(table, {"corpus": "c"})
    assert selected and selected.on_a is not None and selected.on_a.tolist() == on_a.tolist()
    assert gaps_in(table, {"corpus": "d"}) is None
