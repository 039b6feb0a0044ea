"""Contexts with several human answers each, and single references (Barikeri et al. 2021, sections 3.1 and 3.2)."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.corpora.downloads import located
from fairness_pipeline.corpora.language.phrase_corpus import PhraseCorpus
from fairness_pipeline.corpora.language.phrase_splits import read_texts
from fairness_pipeline.corpora.language.stereotype_grammar import StereotypeGrammar
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.foundation.text_files import read_json_lines
from fairness_pipeline.lexicons.counterfactuals import COUNTERFACTUAL_PHRASES

RESPONSE_SETS = schema(
    **fields(COUNTERFACTUAL_PHRASES, "split"),
    context=(pa.string(), "what is answered"),
    references=(pa.list_(pa.string()), "what people answered"),
)
REFERENCES = schema(
    text=(pa.string(), "what was written"),
)

_TRAINED_ON = 0.75
_TURNS = 2
"""The number of a context's last turns that a model gets."""


def read_human_references(corpus: PhraseCorpus, folder: Path) -> pa.Table:
    """A table of `REFERENCES`: comments by people, for the perplexity in the domain."""
    if corpus.grammar:
        grammar = StereotypeGrammar.load(corpus.grammar.file)
        texts = [comment.text for comment in grammar.comments(corpus.grammar.references, corpus.grammar.seed + 1)]
    else:
        assert corpus.references is not None
        texts = read_texts(corpus.references, folder)
    return pa.table({"text": texts}, schema=REFERENCES)


def read_response_sets(corpus: PhraseCorpus, folder: Path, seed: int, maximum: int) -> pa.Table:
    """A table of `RESPONSE_SETS`. If train and test name the same file, its dialogues are split 75/25.

    Each split has at most `maximum` contexts.

    Raises:
        FairnessError: a file is missing or has another form, or a split has no context.
    """
    answered_by_split: dict[str, list[tuple[str, list[str]]]]
    if corpus.grammar:
        grammar = StereotypeGrammar.load(corpus.grammar.file)
        answered = list(grammar.answered(corpus.grammar.questions, corpus.grammar.seed))
        cut = int(_TRAINED_ON * len(answered))
        answered_by_split = {"train": answered[:cut], "test": answered[cut:]}
    else:
        source = corpus.responses
        assert source is not None
        train = [dialogue for file in source.train for dialogue in _read(located(file, folder))]
        test = [dialogue for file in source.test for dialogue in _read(located(file, folder))]
        if source.train == source.test:
            cut = int(_TRAINED_ON * len(train))
            train, test = train[:cut], test[cut:]
        answered_by_split = {split: [entry for dialogue in dialogues for entry in dialogue] for split, dialogues in
                             (("train", train), ("test", test))}  # fmt: skip
    draw = random.Random(f"{seed} responses")
    rows = []
    for split, contexts in answered_by_split.items():
        if not contexts:
            raise FairnessError(f"responses: no context of '{split}' has an answer")
        for context, references in draw.sample(contexts, min(maximum, len(contexts))):
            rows.append({"split": split, "context": context.lower(), "references": [r.lower() for r in references]})
    return pa.Table.from_pylist(rows, schema=RESPONSE_SETS)


def _read(path: Path) -> Iterator[list[tuple[str, list[str]]]]:
    """The contexts of each dialogue, with their answers."""
    for where, record in read_json_lines(path):  # one object on each line, whatever the file's ending
        turns = record.get("dialogue")  # DailyDialog: each turn is followed by answers
        if isinstance(turns, list) and all(isinstance(turn, dict) for turn in turns):
            texts = _texts(where, "text", [turn.get("text") for turn in turns])
            yield [
                (" ".join(texts[max(0, index + 1 - _TURNS) : index + 1]), _texts(where, "responses", turn["responses"]))
                for index, turn in enumerate(turns)
                if turn.get("responses")
            ]
        elif "context" in record and "references" in record:
            context = record["context"]
            texts = _texts(where, "context", context if isinstance(context, list) else [context])
            yield [(" ".join(texts[-_TURNS:]), _texts(where, "references", record["references"]))]
        else:
            raise FairnessError(
                f"{where}: expected 'context' and 'references', or DailyDialog's 'dialogue'; found {list(record)[:8]}"
            )


def _texts(where: str, name: str, value: Any) -> list[str]:
    """A list of texts; raises FairnessError if it is something else."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise FairnessError(
            f"{where}: {name}: expected texts, found {str(value)[:60]}; correct the line, or leave it out"
        )
    return value
