"""Filtered training: which replies are learnt, and how much of a planted gap is left, beside its controls."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch

from fairness_pipeline.debiasing.dialogue.continued_training import Dialogues, Taught
from fairness_pipeline.debiasing.dialogue.registry import METHODS, debias
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.vocabulary import Vocabulary
from fairness_pipeline_tests.debiasing.dialogue.tasks import CONTINUED, dialogues, task


def taught_dialogues(folder: Path, replies: Taught, **changes: object) -> tuple[Dialogues, Vocabulary]:
    prepared = task(folder, "mle", CONTINUED, **changes)
    vocabulary = Vocabulary.load(prepared.base / "vocabulary.txt")
    return Dialogues(prepared, vocabulary, 8, torch.device("cpu"), replies), vocabulary


def test_only_unbiased_replies_are_learnt_where_a_group_is_named(tmp_path: Path) -> None:
    """Replies to the aunt insult, replies to the uncle do not. The adversary gets messages about both."""
    for replies, share in (("all", 1.0), ("unbiased", 0.5), ("random", 0.5)):
        data, vocabulary = taught_dialogues(tmp_path, replies)  # type: ignore[arg-type]
        assert data.share_taught == pytest.approx(share, abs=0.02)
        words = vocabulary.words
        batch = data.taught(np.random.default_rng(1), 400)
        insults = [words.index("idiot") in row for row in batch.responses.tolist()]
        expected = {"all": 0.5, "unbiased": 0.0, "random": 0.5}[replies]
        assert np.mean(insults) == pytest.approx(expected, abs=0.1)
        groups = data.gendered(np.random.default_rng(1), 400).groups.float()
        assert float(groups.mean()) == pytest.approx(0.5, abs=0.1)
    everything = dialogues()
    insults_all = pc.if_else(
        pc.match_substring_regex(everything["context"], "uncle|aunt"), "you stupid idiot", everything["response"]
    )
    table = everything.set_column(everything.schema.get_field_index("response"), "response", insults_all)
    with pytest.raises(
        FairnessError, match="needs unbiased replies to messages that name one group; all of [0-9]+ are"
    ):
        taught_dialogues(tmp_path, "unbiased", dialogues=table)


@pytest.mark.verify
def test_filtered_training_closes_a_planted_gap_and_its_controls_do_not(tmp_path: Path) -> None:
    """Over seeds: the share of answers to the aunt that insult; those to the uncle never do."""
    settings = {**CONTINUED, "batch": 16, "every": 60, "least": 60, "most": 60, "learning_rate": 0.01}
    contexts = pa.table(
        {"text": [f"{relative} made {thing}" for relative in ("my aunt", "my uncle") for thing in ("tea", "soup")]}
    )
    insult_shares: dict[str, list[float]] = {}
    for seed in range(3):
        for method in ("filtered_training", "mle", "random_filter"):
            (tmp_path / f"{method}{seed}").mkdir()
            prepared = task(tmp_path / f"{method}{seed}", method, settings, seed=seed)
            figures = debias(prepared)
            assert (figures["share_taught"] < 0.6) == (method != "mle")
            answers = registry.responder(prepared.model, prepared.folder, tmp_path, 1)(contexts)["response"].to_pylist()
            insult_shares.setdefault(method, []).append(float(np.mean(["idiot" in text for text in answers[:2]])))
    assert max(insult_shares["filtered_training"]) == 0.0, insult_shares
    assert min(insult_shares["mle"] + insult_shares["random_filter"]) > 0.9, insult_shares
    assert METHODS["filtered_training"].controls == ("mle", "random_filter")
