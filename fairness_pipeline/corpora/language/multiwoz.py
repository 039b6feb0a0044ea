"""Turns of MultiWOZ with the values that the user gives in them, right and wrong (Barikeri et al. 2021, 3.2)."""

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from fairness_pipeline.corpora.downloads import located
from fairness_pipeline.corpora.language.phrase_corpus import PhraseCorpus
from fairness_pipeline.corpora.language.stereotype_grammar import StereotypeGrammar
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.foundation.text_files import read_json
from fairness_pipeline.lexicons.counterfactuals import COUNTERFACTUAL_PHRASES

STATE_TURNS = schema(
    **fields(COUNTERFACTUAL_PHRASES, "split"),
    text=(pa.string(), "what was written"),
    right=(pa.bool_(), "whether the user gives the value in this turn"),
)
"""`text` joins the system's turn, the user's turn, domain, slot and value; `right`: whether the user gives it."""

_NONE = ("", "not mentioned", "none", "dontcare", "dont care", "do n't care")
_TRAINED_ON = 0.75


class StateTurn(NamedTuple):
    """The system's turn, the user's next turn, and one value that the user gives."""

    system: str
    user: str
    domain: str
    slot: str
    value: str


def read_state_turns(corpus: PhraseCorpus, folder: Path, seed: int, maximum: int) -> pa.Table:
    """A table of `STATE_TURNS`: each value that a turn adds or changes, and one wrong value for the same slot.

    Values of earlier turns are left out: in the paper the model reads only the last two turns and cannot know them.
    Each split has at most `maximum` right values.

    Raises:
        FairnessError: a file is missing or is not MultiWOZ, or a split has no value.
    """
    turns_by_split: dict[str, list[StateTurn]]
    if corpus.grammar:
        grammar = StereotypeGrammar.load(corpus.grammar.file)
        turns = [StateTurn(*turn) for turn in grammar.turns(corpus.grammar.turns, corpus.grammar.seed)]
        cut = int(_TRAINED_ON * len(turns))
        turns_by_split = {"train": turns[:cut], "test": turns[cut:]}
    else:
        assert corpus.state_tracking is not None
        files = {"train": corpus.state_tracking.train, "test": corpus.state_tracking.test}
        turns_by_split = {
            split: [turn for file in split_files for turn in _read(located(file, folder))]
            for split, split_files in files.items()
        }
    values: dict[tuple[str, str], list[str]] = {}
    for turn in (turn for turns in turns_by_split.values() for turn in turns):
        slot_values = values.setdefault((turn.domain, turn.slot), [])
        if turn.value not in slot_values:
            slot_values.append(turn.value)
    draw = random.Random(f"{seed} turns")
    rows = []
    for split, turns in turns_by_split.items():
        if not turns:
            raise FairnessError(f"state_tracking: no turn of '{split}' gives a value; are these MultiWOZ dialogues?")
        chosen = draw.sample(turns, min(maximum, len(turns)))
        for turn in chosen:
            wrong = [value for value in values[turn.domain, turn.slot] if value != turn.value]
            rows.append({"split": split, "text": _text(turn, turn.value), "right": True})
            if wrong:
                rows.append({"split": split, "text": _text(turn, draw.choice(wrong)), "right": False})
    return pa.Table.from_pylist(rows, schema=STATE_TURNS)


def _text(turn: StateTurn, value: str) -> str:
    return " ".join(f"{turn.system} {turn.user} {turn.domain} {turn.slot} {value}".lower().split())


def _read(path: Path) -> Iterator[StateTurn]:
    dialogues = read_json(path)
    if not isinstance(dialogues, dict):
        raise FairnessError(f"{path}: expected dialogues by their id, found {type(dialogues).__name__}")
    for name, dialogue in dialogues.items():
        if not isinstance(dialogue, dict) or not isinstance(dialogue.get("log"), list):
            raise FairnessError(f"{path}: {name}: expected a dialogue with a 'log', as in ConvLab's MultiWOZ")
        log: list[dict[str, Any]] = dialogue["log"]
        known: dict[tuple[str, str], str] = {}
        for position in range(0, len(log) - 1, 2):
            try:
                state = dict(_state(log[position + 1].get("metadata") or {}))
                system, user = log[position - 1]["text"] if position else "", log[position]["text"]
            except (AttributeError, KeyError, TypeError) as error:
                raise FairnessError(
                    f"{path}: {name}, turns {position + 1} and {position + 2}: expected the 'text' of each and the "
                    f"second's 'metadata' with values by domain and slot ({type(error).__name__}: {error}); is it "
                    "ConvLab's MultiWOZ?"
                ) from None
            for (domain, slot), value in state.items():
                if known.get((domain, slot)) != value:
                    yield StateTurn(system, user, domain, slot, value)
            known = state


def _state(metadata: dict[str, Any]) -> Iterable[tuple[tuple[str, str], str]]:
    for domain, slots in metadata.items():
        for part in ("semi", "book"):
            for slot, value in slots.get(part, {}).items():
                if isinstance(value, str) and value.strip().lower() not in _NONE:
                    yield (domain, slot), value.strip().lower()
