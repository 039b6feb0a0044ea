"""Asks a model of this project the questions of a benchmark, or how likely it finds the benchmark's sentences."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.dialogue.dialogues import SCHEMA
from fairness_pipeline.corpora.downloads import located
from fairness_pipeline.corpora.outcomes.formats import ASKED, BENCHMARKS
from fairness_pipeline.corpora.outcomes.formats.messages import ANSWER as ANSWER_FIELD
from fairness_pipeline.corpora.outcomes.specification import MESSAGES, Format
from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import File, optional, unhashed
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.foundation.schemas import optional as nullable
from fairness_pipeline.foundation.yaml_files import validate
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.models.dialogue import registry as dialogue_models
from fairness_pipeline.models.dialogue.responding import answer_each
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.language import registry as language_models
from fairness_pipeline.models.language.specification import BESIDE, LanguageModelSpecification
from fairness_pipeline.models.loading import scorer_of
from fairness_pipeline.models.replies import ANSWER
from fairness_pipeline.models.specification import SYSTEM
from fairness_pipeline.workspace.distinct import each_distinct

BENCHMARK_ANSWERS = schema(
    **fields(ASKED, "id", "field", "text"),
    answer=nullable(pa.string(), "what the model answered; null if it gave no answer, or was not asked in words"),
    log_likelihood=nullable(
        pa.float64(), "of the text (nats), or its mean over the tokens; null if the model was asked"
    ),
    tokens=nullable(pa.int64(), "how many tokens that is over; null if the model was asked"),
)
"""A row for each text of a benchmark that a model answered or scored."""
_GUESSING = 0.95
"""A model has learnt nothing if its loss is above this share of that of a uniform draw."""
Model = LanguageModelSpecification | ModelSpecification


def model_of(form: Format, document: Mapping[str, Any], path: Path) -> Model:
    """The model that a file of `data/models` describes, as a benchmark needs it: one that writes, or one that scores.

    Raises:
        FairnessError: the file is wrong, or the model is trained here.
    """
    writes = form == MESSAGES or BENCHMARKS[form].answer == "text"
    kinds = ("causal_lm", "encoder_decoder", "endpoint") if writes else ("causal_lm", "masked_lm")
    architecture = document.get("architecture")
    if architecture not in kinds or document.get("training"):
        ability = "answers questions" if writes else "says how likely texts are"
        advice = ", trained here: save it as a folder, and name that" if document.get("training") else ""
        raise FairnessError(
            f"{path}: architecture: {form} needs a model that {ability}, of the kind {' or '.join(kinds)}; "
            f"found {architecture!r}{advice}"
        )
    if writes:
        # The specification requires a corpus, which has no effect here.
        return validate(ModelSpecification, {"corpus": "none", **document}, path).located(path.parent)
    return validate(LanguageModelSpecification, dict(document), path).located(path.parent)


def asked_about_groups(questions: pa.Table) -> pa.Table:
    """A table of `ASKED` with questions about groups; a text follows its line of the system prompt, if it has one."""
    prompts = zip(questions["system"].to_pylist(), questions["text"].to_pylist(), strict=True)
    texts = [f"{line}{SYSTEM}{text}" if line else text for line, text in prompts]
    count = questions.num_rows
    columns = {"id": questions["id"], "field": pa.repeat(ANSWER_FIELD, count), "text": texts}
    return pa.table({**columns, "beside": pa.repeat("", count)}, schema=ASKED)


@dataclass(frozen=True)
class Asking:
    """A benchmark and its file (its second file in `beside`; none for messages, whose questions are a table), a model
    with the folder of its weights, the libraries that run it, and its query epoch if it may change."""

    format: Format
    file: File | None
    model: Model
    folder: File | None
    versions: Mapping[str, str]
    round: str | None
    addresses: Mapping[str, CorpusFile] = unhashed()
    beside: File | None = optional()

    def answers(self, questions: pa.Table | None, run: Run) -> tuple[pa.Table, dict[str, Any]]:
        """A table of `BENCHMARK_ANSWERS`, with figures: the number of failed answers, and the model that was served.

        Args:
            questions: For messages, a table of `GROUP_QUESTIONS`.
            run: The run, with the folder for the model's files.
        """
        for address in self.addresses.values():
            located(address, Path(), run.progress)
        if questions is not None:
            asked = asked_about_groups(questions)
        else:
            assert self.file is not None
            asked = BENCHMARKS[self.format].asked(self.file.path)
        folder = run.folder / "model"
        folder.mkdir(parents=True, exist_ok=True)
        if isinstance(self.model, ModelSpecification):
            return self._answered(self.model, asked, folder, run)
        return self._scored(self.model, asked, folder, run)

    def _answered(
        self, model: ModelSpecification, asked: pa.Table, folder: Path, run: Run
    ) -> tuple[pa.Table, dict[str, Any]]:
        dialogue_models.prepare(model, SCHEMA.empty_table(), folder, run.seed)
        load = partial(dialogue_models.responder, model, folder, run.folder, run.seed)
        replies = answer_each(
            asked["text"], scorer_of(load, model.libraries, model), run.folder, run.progress, engine=run.engine
        )
        responses = pc.if_else(pc.equal(replies["kind"], ANSWER), replies["response"], pa.scalar(None, pa.string()))
        kinds = {kind: count for kind, count in Counter(replies["kind"].to_pylist()).items() if kind != ANSWER}
        served = {name: count for name, count in Counter(replies["served"].to_pylist()).items() if name}
        figures = {"without_answer": kinds, **({"served_model": served} if served else {})}
        return _table(asked, answer=responses), figures

    def _scored(
        self, model: LanguageModelSpecification, asked: pa.Table, folder: Path, run: Run
    ) -> tuple[pa.Table, dict[str, Any]]:
        language_models.prepare(model, [], folder, run.seed)
        texts = asked["text"]
        if not model.causal:
            compared = pc.binary_join_element_wise(texts, asked["beside"], BESIDE)
            texts = pc.if_else(pc.equal(asked["beside"], ""), texts, compared)
        scorer = language_models.likelihood_scorer(model, folder)
        scores = each_distinct(texts, scorer, folder=run.folder, progress=run.progress, engine=run.engine)
        mean = [-math.log(value) for value in scores["perplexity"].to_pylist()]
        counts = scores["tokens"].to_pylist()
        tokens = run.engine.examine(scorer)["tokens"]
        guesses = -sum(mean) / max(1, len(mean)) > _GUESSING * math.log(tokens)
        if BENCHMARKS[self.format].answer == "likelihood":
            mean = [value * count for value, count in zip(mean, counts, strict=True)]
        return _table(asked, log_likelihood=pa.array(mean, pa.float64()), tokens=scores["tokens"]), {"guesses": guesses}


def _table(asked: pa.Table, **columns: pa.Array | pa.ChunkedArray) -> pa.Table:
    empty = {name: pa.nulls(asked.num_rows, BENCHMARK_ANSWERS.field(name).type) for name in BENCHMARK_ANSWERS.names}
    questions = {name: asked[name] for name in ("id", "field", "text")}
    return pa.table({**empty, **questions, **columns}, schema=BENCHMARK_ANSWERS)


def by_id(answers: pa.Table) -> dict[str, dict[str, Any]]:
    """Answers in the form that the readers of benchmarks take: by the id of the question, and by field."""
    by_field: dict[str, dict[str, Any]] = {}
    for row in answers.to_pylist():
        value = row["answer"] if row["log_likelihood"] is None else row["log_likelihood"]
        by_field.setdefault(row["id"], {})[row["field"]] = value
    return by_field
