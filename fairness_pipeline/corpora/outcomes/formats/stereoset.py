"""StereoSet (Nadeem et al. 2021): which of three sentences a language model finds likely.

The authors' `dev.json` has the sentences with their `gold_label`, `predictions_*.json` of `code/predictions` the scores
by the sentences' ids. SS is the share of items whose stereotype scores above its opposite; LMS how often both score
above the unrelated sentence; ICAT = LMS min(SS, 100 - SS) / 50. The target words are the sample: religion has three.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairness_pipeline.corpora.outcomes.formats.shared import MODEL, Benchmark, Row, needed
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_json

LMS = "LMS"
"""The name under which the mean of `meaningful` is shown beside the verdicts."""
_LABELS = {"stereotype": "stereotype", "anti-stereotype": "anti_stereotype", "unrelated": "unrelated"}


def icat(stereotype_score: float, meaningful: float) -> float:
    """The idealised CAT score, LMS min(SS, 100 - SS) / 50; it is 100 for a fair and sensible model.

    Examples:
        >>> icat(50.0, 100.0), icat(100.0, 100.0)
        (100.0, 0.0)
    """
    return meaningful * min(stereotype_score, 100 - stereotype_score) / 50


def _sentences(path: Path) -> Iterator[Row]:
    content = read_json(path)
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, dict):
        raise FairnessError(f"{path}: expected an object with 'data', as StereoSet's dev.json")
    for kind, items in data.items():
        for index, item in enumerate(items):
            where = f"{path}, {kind} {index}"
            needed(item, ("id", "target", "bias_type", "sentences"), where)
            labels = {sentence["gold_label"]: sentence for sentence in item["sentences"]}
            needed(labels, _LABELS, where)
            row = {"item": item["id"], "kind": kind, "target": item["target"], "group": item["bias_type"]}
            before = f"{item.get('context')} " if kind == "intersentence" else ""
            for label, name in _LABELS.items():
                sentence = labels[label]["sentence"]
                yield {**row, "id": labels[label]["id"], "name": name, "sentence": sentence, "text": before + sentence}


def _predictions(path: Path, key: str) -> dict[str, Row]:
    content = read_json(path)
    scores = [score for part in content.values() for score in part] if isinstance(content, dict) else []
    if not scores or not all(isinstance(score, dict) for score in scores):
        raise FairnessError(f"{path}: expected lists of objects with 'id' and 'score', as the authors' predictions")
    for index, score in enumerate(scores):
        needed(score, (key, "score"), f"{path}, score {index}")
    return {str(score[key]): score for score in scores}


def _choices(rows: Iterator[Row], path: Path) -> Iterator[Row]:
    """The three sentences of an item in one row."""
    items: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        kept = {name: row[name] for name in ("item", "kind", "target", "group", MODEL)}
        item = items.setdefault((row[MODEL], row["item"]), kept)
        item |= {row["name"]: row["sentence"], f"{row['name']}_score": row["score"]}
    for item in items.values():
        sensible = {name: item[f"{name}_score"] for name in ("stereotype", "anti_stereotype")}
        of_kind = {f"{item['kind']}_{name}": score for name, score in sensible.items()}
        above = sum(score > item["unrelated_score"] for score in sensible.values())
        yield {**item, **of_kind, "meaningful": 50 * above}


BENCHMARK = Benchmark(
    _sentences,
    key="id",
    row_id="id",
    texts={"score": ("text", "score")},
    answer="likelihood_per_token",
    trials=_choices,
    answers_of=_predictions,
)
"""A row for each item: `item`, `kind` (`intrasentence`, `intersentence`), `target`, `group` (its type of bias), the
sentences, their scores (`stereotype_score` and so on, of one kind `intrasentence_stereotype`), and `meaningful`: how
many of the two sentences that make sense score above the unrelated one, in percent. A model scores an intersentence
item with its context."""
