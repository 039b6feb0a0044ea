from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from fairness_pipeline.models.batching import EncodedDialogues
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.dialogue.retrieval import Ranker, best_candidates, draw_candidates, encode_turns
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.vocabulary import Vocabulary

CPU = torch.device("cpu")


def specification(candidates: int = 1000, **training: object) -> ModelSpecification:
    return ModelSpecification(
        architecture="retrieval",
        studies=("dialogue_fairness",),
        corpus="c",
        retrieval={
            "layers": 2, "heads": 2, "embedding": 16, "feed_forward": 16, "vocabulary": 60, "longest": 8,
            "candidates": candidates,
        },
        training={
            "optimiser": "adamax", "learning_rate": 0.02, "clipping": 1.0, "batch_tokens": 400, "epochs": 20,
            "patience": 20, **training,
        },
        device="cpu",
    )  # fmt: skip


def dialogues(rows: int = 300) -> pa.Table:
    colours = ["red", "green", "blue"]
    return pa.table(
        {
            "context": [f"what is {'very ' * (i % 4)}{colours[i % 3]} number {i % 7}" for i in range(rows)],
            "response": [f"{colours[i % 3]} it is" for i in range(rows)],
            "split": ["valid" if i % 5 == 0 else "train" for i in range(rows)],
        }
    )


def test_the_best_candidate_is_that_of_a_full_sort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairness_pipeline.models.dialogue.retrieval._CHUNK", 37)
    monkeypatch.setattr("fairness_pipeline.models.dialogue.retrieval._QUERIES", 5)
    torch.manual_seed(0)
    queries, candidates = torch.randn(23, 12), torch.randn(500, 12)
    expected = torch.argsort(queries @ candidates.T, dim=1, descending=True)[:, 0]
    assert best_candidates(queries, candidates).equal(expected)
    # Of equal scores the first wins, within a chunk and across chunks; negative scores count, too.
    same = torch.ones(100, 1)
    assert best_candidates(torch.tensor([[-1.0], [2.0]]), same).tolist() == [0, 0]


def test_an_encoding_does_not_depend_on_its_batch() -> None:
    torch.manual_seed(0)
    model = Ranker(specification().retrieval, 20).eval()
    turns = [np.array(turn) for turn in ([4, 5, 6, 7, 8], [9], [10, 4], [5, 4, 6])]
    together = encode_turns(model, turns)
    for i, turn in enumerate(turns):
        assert torch.allclose(encode_turns(model, [turn])[0], together[i], atol=1e-5)
    assert not torch.allclose(encode_turns(model, [turns[3][::-1].copy()])[0], together[3], atol=1e-3)  # order counts


def test_in_batch_negatives_by_hand() -> None:
    """The loss of row i is -log softmax over the batch's responses; an equal response is not a negative."""
    torch.manual_seed(0)
    model = Ranker(specification().retrieval, 8).eval()
    encoded = EncodedDialogues.of_texts(["a", "b", "c"], ["b", "c", "b"], Vocabulary(["a", "b", "c", "d"]), longest=8)
    batch = encoded.batch(np.arange(3), CPU)
    contexts, responses = model.encode(batch.contexts), model.encode(batch.responses)
    scores = (contexts @ responses.T / 4).exp()  # the root of the width, 16
    expected = -sum(
        torch.log(scores[i, i] / sum(scores[i, j] for j in candidates)).item()
        for i, candidates in enumerate([(0, 1), (0, 1, 2), (1, 2)])
    )
    loss, count = model(batch)
    assert (loss.item(), int(count)) == (pytest.approx(expected, rel=1e-5), 3)


def test_it_learns_and_answers_with_candidates(tmp_path: Path) -> None:
    spec = specification()
    figures = registry.prepare(spec, dialogues(), tmp_path, seed=1)
    assert figures["candidates"] == 3
    answers = registry.responder(spec, tmp_path, tmp_path, seed=1)(
        pa.table({"text": ["what is red number 1", "what is very blue number 2", "what is green"]})
    )
    assert answers["response"].to_pylist() == ["red it is", "blue it is", "green it is"]


def test_preparing_resumes_after_a_kill_between_training_and_candidates(tmp_path: Path) -> None:
    spec = specification(epochs=2)
    first = registry.prepare(spec, dialogues(), tmp_path, seed=1)
    vectors = (tmp_path / "candidates.safetensors").read_bytes()
    (tmp_path / "candidates.safetensors").unlink()
    (tmp_path / "candidates.parquet").unlink()
    assert registry.prepare(spec, dialogues(), tmp_path, seed=1) == first
    assert (tmp_path / "candidates.safetensors").read_bytes() == vectors
    assert pq.read_table(tmp_path / "candidates.parquet").num_rows == 3


def test_candidates_are_distinct_and_drawn_whatever_the_order() -> None:
    texts = [f"r{i % 50}" for i in range(200)]
    forwards = draw_candidates(pa.chunked_array([texts]), 20, seed=3)
    backwards = draw_candidates(pa.chunked_array([texts[::-1]]), 20, seed=3)
    assert len(set(forwards)) == 20
    assert set(forwards) == set(backwards) != set(draw_candidates(pa.chunked_array([texts]), 20, seed=4))
    assert draw_candidates(pa.chunked_array([["b", "a", "b"]]), 20, seed=1) == ["b", "a"]
