"""The answers of models to both contexts of every pair, and to contexts with changes that should change nothing."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.debiasing.dialogue.registry import responder
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.foundation.parquet import read_parquet
from fairness_pipeline.lexicons.no_effect import changed_contexts
from fairness_pipeline.lineage.assets import Assets, Result, one_of
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.measures.dialogue.answer_changes import NO_EFFECT_RESPONSES
from fairness_pipeline.models.dialogue import imported
from fairness_pipeline.models.dialogue.architectures import ARCHITECTURES
from fairness_pipeline.models.dialogue.responding import LONGEST, RESPONSES, answer_each, respond, shortened
from fairness_pipeline.models.loading import scorer_of
from fairness_pipeline.models.replies import EMPTY, FAILED, FILTERED, REFUSED
from fairness_pipeline.models.specification import Decoding
from fairness_pipeline.studies.dialogue_fairness.lineage.models import (
    Model,
    debiased_dialogue_models,
    dialogue_models,
    model_of,
)
from fairness_pipeline.studies.dialogue_fairness.lineage.pairs import context_pairs, no_effect_contexts
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.workspace.distinct import LazyScorer, Scorer
from fairness_pipeline.workspace.imports import imported_file
from fairness_pipeline.workspace.lake import Key

asset = Assets(DialoguePart, stage="answers", axes=("dimension", "model"))

WEIGHTS = one_of(dialogue_models, debiased_dialogue_models)
"""The folder of a model, debiased or not."""


@dataclass(frozen=True, kw_only=True)
class Answering(Model):
    """A model, how it answers, and the file of its answers if they were imported."""

    decoding: Decoding
    imported: File | None

    def responder(self, weights: Path, run: Run) -> Scorer:
        """The scorer that queries the model."""
        load = partial(responder, self.model, weights, run.folder, run.seed)
        return scorer_of(load, ARCHITECTURES[self.model.architecture].libraries, self.model)


def answering_of(part: DialoguePart, key: Key) -> Answering:
    """A model with its decoding; in a partition without a dimension it answers the test split."""
    model = part.models[key["model"]]
    # An endpoint decides itself whether an answer may be empty.
    decoding = model.decoding.without("keep_empty") if model.endpoint else model.decoding
    file = part.imported_responses(key["model"], key["dimension"]) if model.architecture == "imported" else None
    answers = imported_file(file, part.project.workspace)
    return Answering(**vars(model_of(part, key)), decoding=decoding, imported=answers)


@asset(
    covers=lambda part, key: part.answers(key),
    inputs=answering_of,
    reads={"pairs": context_pairs, "weights": WEIGHTS},
    code_version="2",
    schema=RESPONSES,
    checks=(checks.not_empty, checks.both_sides_present),
    asks=True,
)
def responses(inputs: Answering, pairs: pa.Table, weights: Path, run: Run) -> Result:
    """The model's answers to both contexts of every pair; identical contexts are asked once."""
    if inputs.imported:
        table = imported.matching(read_parquet(inputs.imported.path), pairs)
        table = table.set_column(table.column_names.index("response"), "response", shortened(table["response"]))
        figures, failed = {}, table.filter(pc.equal(table["kind"], FAILED)).select(["context"])
    else:
        responder = inputs.responder(weights, run)
        answers = respond(pairs, responder, run.folder, run.progress, engine=run.engine)
        table = answers.table
        figures = {"distinct_contexts": answers.replies.num_rows}
        served = pc.value_counts(answers.replies["served"]).to_pylist()
        if names := {row["values"]: row["counts"] for row in served if row["values"]}:
            figures["served_model"] = names
        failed = answers.replies.filter(pc.equal(answers.replies["kind"], FAILED)).select(["context", "problem"])
        if inputs.model.huggingface and isinstance(responder, LazyScorer):
            figures |= run.engine.examine(responder)
    kinds = {row["values"]: row["counts"] for row in pc.value_counts(table["kind"]).to_pylist()}
    counts = pc.value_counts(table["response"])
    commonest = max(counts.to_pylist(), key=lambda entry: entry["counts"])
    figures |= {
        "distinct_responses": len(counts),
        "empty_responses": kinds.get(EMPTY, 0),
        **{f"{kind}_responses": kinds[kind] for kind in (REFUSED, FILTERED, FAILED) if kind in kinds},
        **({"cut_responses": cut} if (cut := _cut(table)) else {}),
        "commonest_response": commonest["values"][:200],
        "commonest_share": round(commonest["counts"] / table.num_rows, 4),
    }
    excerpts = {"sample": table.slice(0, 6)}
    return Result(
        table, figures, tables={**excerpts, "failed": failed.slice(0, _LISTED)} if failed.num_rows else excerpts
    )


def _cut(table: pa.Table) -> int:
    """How many answers have the greatest length that is kept."""
    return int(pc.sum(pc.equal(pc.utf8_length(table["response"]), LONGEST)).as_py() or 0)


_LISTED = 20
"""The number of unanswered contexts that are listed."""


def has_controls(part: DialoguePart, key: Key) -> bool:
    """Whether contexts are asked again with changes without effect; an imported model cannot be asked."""
    can_answer = part.models[key["model"]].architecture != "imported"
    return part.answers(key) and part.settings.pairs.no_effect > 0 and can_answer


@asset(
    covers=has_controls,
    inputs=answering_of,
    reads={"contexts": no_effect_contexts, "weights": WEIGHTS},
    code_version="1",
    schema=NO_EFFECT_RESPONSES,
    asks=True,
)
def no_effect_responses(inputs: Answering, contexts: pa.Table, weights: Path, run: Run) -> Result:
    """The model's answers to contexts with changes that should change nothing."""
    responder = inputs.responder(weights, run)
    replies = answer_each(contexts["changed"], responder, run.folder, run.progress, engine=run.engine)
    table = contexts
    for name in ("response", "kind"):
        table = table.append_column(NO_EFFECT_RESPONSES.field(name), replies[name])
    return Result(table.cast(NO_EFFECT_RESPONSES), {"distinct_contexts": len(changed_contexts(contexts))})
