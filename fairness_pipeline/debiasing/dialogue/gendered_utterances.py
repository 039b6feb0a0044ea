"""The utterances that Debiased-Chat's autoencoder is trained on: Liu 2022, section 3.2.2.1.

Unbiased utterances that name one group and, if configured, utterances that name none.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.debiasing.dialogue.biased_text import BiasScorer, unbiased
from fairness_pipeline.debiasing.dialogue.registry import Task
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.stop_words import stop_words
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.lexicons.text import TOKEN, fold
from fairness_pipeline.models.vocabulary import END, UNKNOWN, Vocabulary

NEUTRAL = -1
"""The group number of an utterance that names none."""
_LEAST = 20


class Utterances(NamedTuple):
    """Word numbers of utterances, groups (0 for a, 1 for b, `NEUTRAL`), and the words that count for a bag."""

    turns: list[np.ndarray]
    groups: np.ndarray
    counted: list[np.ndarray]

    def select(self, rows: np.ndarray) -> "Utterances":
        """Only these rows."""
        return Utterances([self.turns[i] for i in rows], self.groups[rows], [self.counted[i] for i in rows])

    def extended(self, others: "Utterances") -> "Utterances":
        """These and others."""
        groups = np.concatenate([self.groups, others.groups])
        return Utterances([*self.turns, *others.turns], groups, [*self.counted, *others.counted])


def unbiased_utterances(task: Task) -> pa.Table:
    """The unbiased gendered utterance corpus (section 3.2.2.1), for any dimension.

    It has every context and response of the training dialogues that names one group only, is neither offensive nor
    clearly positive or negative by the measures of study 1, and holds no attribute word. Repeats are kept.

    Returns:
        Columns `utterance` and `side` (`a` or `b`).
    """
    train = task.dialogues.filter(pc.equal(task.dialogues["split"], "train"))
    texts = pa.chunked_array([*train["context"].chunks, *train["response"].chunks], pa.string())
    swapper = Swapper(task.words, pronouns=task.pairs.pronouns)
    distinct = texts.unique()
    likely = distinct.filter(pc.match_substring_regex(distinct, swapper.matcher.prefilter()))
    sides = pa.array([side for _, side in swapper.find_all(likely)], pa.string())
    kept = unbiased(
        likely.filter(pc.is_in(sides, pa.array(["a", "b"]))),
        BiasScorer(task.scorings),
        task.progress,
    )
    kept_sides = sides.take(pc.index_in(kept, likely))
    rows = pc.index_in(texts, kept).combine_chunks().drop_null()
    return pa.table({"utterance": kept.take(rows), "side": kept_sides.take(rows)})


def neutral_utterances(task: Task, count: int) -> pa.Table:
    """Returns `count` different contexts and responses of the training dialogues that name no group, also biased ones.

    The unbiased utterances lack the words that make others biased. Without these utterances the features of such words,
    and what D2 could tell from them, would be left to chance. The thesis has no such utterances.

    Returns:
        Columns `utterance` and `side` (null).
    """
    train = task.dialogues.filter(pc.equal(task.dialogues["split"], "train"))
    distinct = pa.chunked_array([*train["context"].chunks, *train["response"].chunks], pa.string()).unique()
    swapper = Swapper(task.words, pronouns="extended")
    named = pc.match_substring_regex(distinct, swapper.matcher.prefilter())
    others = distinct.filter(pc.invert(named))
    drawn = np.random.default_rng(task.seed).permutation(len(others))[:count]
    texts = others.take(pa.array(np.sort(drawn)))
    return pa.table({"utterance": texts, "side": pa.nulls(len(texts), pa.string())})


def check_enough(corpus: pa.Table, utterances: pa.Table, task: Task) -> None:
    """Refuses a corpus that has too few different utterances of a group.

    Args:
        corpus: Those whose group word can be seen.
        utterances: All unbiased ones.
        task: Has the names of the groups.

    Raises:
        FairnessError: a group has too few; the error says how many are needed.
    """
    for side in ("a", "b"):
        visible_count, all_count = (
            len(table.filter(pc.equal(table["side"], side))["utterance"].unique()) for table in (corpus, utterances)
        )
        if visible_count < _LEAST:
            raise FairnessError(
                f"the training dialogues hold {all_count} different unbiased utterances of group {side} "
                f"({getattr(task.groups, side)}), {visible_count} of them with a group word that the model knows; the "
                f"disentanglement model needs {_LEAST} or more of each group, and thousands to converge: give it a "
                "larger corpus, or a dimension whose words are commoner there"
            )


def encode(corpus: pa.Table, vocabulary: Vocabulary, words: int, task: Task) -> tuple[np.ndarray, Utterances]:
    """The utterances in which a word that names the group can be seen, and which rows of the `corpus` they are.

    Where the only such word of an utterance is cut away or unknown, only its content would tell the group. A bag counts
    all words except stop words and what the matcher takes for a group's (`he'll`, and `old man` as a whole).

    Args:
        corpus: Columns `utterance`, `side` (null for those that name no group, all of which are kept).
        vocabulary: The dialogue model's, the most frequent words first.
        words: How many of them are distinguished.
        task: Has the dimension and the longest turn.
    """
    assert task.model.seq2seq is not None
    naming = Swapper(task.words, pronouns=task.pairs.pronouns).matcher.terms
    matcher = Swapper(task.words, pronouns="extended").matcher
    stops, texts = stop_words(), corpus["utterance"].combine_chunks()
    rows, turns, counted = [], [], []
    sides = corpus["side"].to_pylist()
    matched_texts = zip(texts.to_pylist(), sides, matcher.find_all(texts), strict=True)
    for row, (text, side, matches) in enumerate(matched_texts):
        tokens = list(TOKEN.finditer(text))[: task.model.seq2seq.longest]
        if not tokens:
            continue
        spelled = [fold(token.group()) for token in tokens]
        numbers = np.array([n if (n := vocabulary.number(word)) < words else UNKNOWN for word in spelled])
        named = [match for match in matches if match[2] in naming]
        known = [token for token, number in zip(tokens, numbers, strict=True) if number != UNKNOWN]
        if side is None or any(_within(token, named) for token in known):
            counts = [
                number > END and word[0].isalnum() and word not in stops and not _within(token, matches)
                for token, word, number in zip(tokens, spelled, numbers, strict=True)
            ]
            rows.append(row)
            turns.append(numbers)
            counted.append(numbers[counts])
    groups = np.array([{"a": 0, "b": 1, None: NEUTRAL}[side] for side in sides], dtype=np.int64)
    return np.array(rows, dtype=np.int64), Utterances(turns, groups[rows], counted)


def naming_words(task: Task, vocabulary: Vocabulary) -> list[int]:
    """The numbers of the words that name a group: listed ones and pronouns, with what is attached to them (`he'll`)."""
    matcher = Swapper(task.words, pronouns="extended").matcher
    matches_by_text = matcher.find_all(pa.array(vocabulary.words, pa.string()))
    return [number for number, matches in enumerate(matches_by_text) if number > END and matches]


def _within(token: re.Match[str], matches: Sequence[tuple[int, int, str]]) -> bool:
    """Whether a token belongs to one of the matches (`he'll` to `he`)."""
    return any(start < token.end() and token.start() < end for start, end, _ in matches)
