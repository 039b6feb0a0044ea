"""Fine-tunes a language model with a debiasing loss or on augmented phrases; searches the grid on `dev`."""

import json
import math
import random
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairness_pipeline.debiasing.language.loss import DebiasingLoss, Weighted, collate, examples_of
from fairness_pipeline.debiasing.language.task import FineTuning, LossGrid, Task
from fairness_pipeline.debiasing.language.terms import TermVectors
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.progress import within
from fairness_pipeline.measures.language.phrase_bias import Pairs, paper_test, without_outliers
from fairness_pipeline.models.language import fine_tuning, registry
from fairness_pipeline.models.language.perplexity import PerplexityScorer
from fairness_pipeline.models.pretrained import positions_of

_CANDIDATE = "candidate"


def fine_tuned(task: Task, texts: list[str], settings: FineTuning) -> dict[str, Any]:
    """Plain language modelling on the phrases."""
    model, tokenizer = registry.load(task.model, task.base, trains=True)
    rows = tokenizer(texts, **_truncation(model))["input_ids"]
    examples = [{"input_ids": row} for row in rows if len(row) > 1]
    recipe = fine_tuning.Recipe(settings.epochs, settings.batch, 1, settings.learning_rate)
    torch.manual_seed(task.seed)
    fine_tuning.train(model.train(), examples, recipe, task.folder, task.seed, progress=task.progress)
    registry.save(model, tokenizer, task.folder)
    return {"phrases": len(examples), "updates": math.ceil(len(examples) / settings.batch) * settings.epochs}


def search(task: Task, debiasing_loss: DebiasingLoss, settings: LossGrid) -> dict[str, Any]:
    """Trains at every point of the grid and keeps the model with the highest p of the paper's test on `dev`.

    The base is loaded and the phrases are tokenised once; finished points are not repeated.

    Returns:
        `grid`: each point with its p, t and perplexity on references; `chosen`: its number.
    """
    model, tokenizer = registry.load(task.model, task.base, trains=True)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    terms = TermVectors(tokenizer, task.lexicon)
    train = [row["text_b"] for row in task.phrases.to_pylist() if row["split"] == "train"]
    examples = examples_of(terms.places(train, _truncation(model).get("max_length")))
    dev = _Dev(task, model, tokenizer, settings.dev_references)
    points = list(product(settings.batch, settings.accumulation, settings.lambda_lm, settings.lambda_d))
    done: list[dict[str, Any]] = []
    for number, (batch, accumulation, lambda_lm, lambda_d) in enumerate(points):
        path = task.folder / f"point-{number}.json"
        if not path.exists():
            model.load_state_dict(weights)
            torch.manual_seed(task.seed)
            loss = Weighted(debiasing_loss, terms, lambda_lm, lambda_d)
            recipe = fine_tuning.Recipe(settings.epochs, batch, accumulation, settings.learning_rate)
            fine_tuning.train(
                model.train(),
                examples,
                recipe,
                task.folder / f"training-{number}",
                task.seed,
                loss=loss,
                collate=collate,
                progress=within(task.progress, number + 1, len(points)),
                note=f"point {number + 1} of {len(points)}",
            )
            tried = {"batch": batch, "accumulation": accumulation, "lambda_lm": lambda_lm, "lambda_d": lambda_d}
            point = {**tried, **dev.judge(model.eval())}
            if all(point["p"] > earlier["p"] for earlier in done):
                registry.save(model, tokenizer, task.folder / f"{_CANDIDATE}-{number}")
            with replacing(path) as temporary:
                temporary.write_text(json.dumps(point), encoding="utf-8")
            shutil.rmtree(task.folder / f"training-{number}", ignore_errors=True)
        done.append(json.loads(path.read_text(encoding="utf-8")))
    chosen = max(range(len(done)), key=lambda number: done[number]["p"])
    _keep(task.folder, chosen)
    return {"grid": done, "chosen": chosen, "phrases": len(examples)}


class _Dev:
    """Judges a point of the grid by the paper's test on the split `dev`, and by references."""

    def __init__(self, task: Task, base: Any, tokenizer: Any, references: int) -> None:
        rows = [row for row in task.phrases.to_pylist() if row["split"] in ("dev", "test")]
        self._tokenizer = tokenizer
        pairs = _scored(base, tokenizer, rows)
        kept = without_outliers(pairs) if task.outliers else set(pairs.ids)
        self._rows = [row for row in rows if row["split"] == "dev" and row["phrase_id"] in kept]
        chosen = list(task.references)
        random.Random(f"{task.seed} dev").shuffle(chosen)
        self._references = chosen[:references]

    def judge(self, model: Any) -> dict[str, float | None]:
        """p and t on `dev`, and the mean perplexity of the references."""
        pairs = _scored(model, self._tokenizer, self._rows)
        t, p = paper_test(pairs.a, pairs.b)
        if math.isnan(p):  # no pair differs
            t, p = 0.0, 1.0
        totals = PerplexityScorer(model, self._tokenizer).totals(self._references)
        perplexities = [math.exp(min(loss / count, 700.0)) for loss, count in zip(*totals, strict=True) if count]
        return {"p": p, "t": t, "references": float(np.mean(perplexities)) if perplexities else None}


def _scored(model: Any, tokenizer: Any, rows: list[dict[str, Any]]) -> Pairs:
    scorer = PerplexityScorer(model, tokenizer)
    sides = []
    for side in "ab":
        totals = scorer.totals([row[f"text_{side}"] for row in rows])
        sides.append(
            np.array([math.exp(min(loss / max(count, 1), 700.0)) for loss, count in zip(*totals, strict=True)])
        )
    zeros = np.zeros(len(rows), dtype=np.int64)
    return Pairs([row["phrase_id"] for row in rows], sides[0], sides[1], zeros, zeros, zeros, zeros)


def _keep(folder: Path, chosen: int) -> None:
    """Leaves the chosen model in the folder, and nothing else of the search."""
    candidate = folder / f"{_CANDIDATE}-{chosen}"
    for path in sorted(candidate.glob("*")):
        path.replace(folder / path.name)
    for path in folder.glob(f"{_CANDIDATE}-*"):
        shutil.rmtree(path)
    for path in folder.glob("point-*.json"):
        path.unlink()


def _truncation(model: Any) -> dict[str, Any]:
    longest = positions_of(model)
    return {"truncation": True, "max_length": longest} if longest else {}
