"""Fine-tuning of Hugging Face causal language models, plain and debiased."""

import math
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file

from fairness_pipeline.debiasing.dialogue.registry import Task, debias
from fairness_pipeline.lexicons.contexts import PairSettings
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings
from fairness_pipeline.models.dialogue import fine_tuning, registry
from fairness_pipeline.models.dialogue.fine_tuning import CausalDialogueModel, CausalDialogues
from fairness_pipeline.models.dialogue.huggingface import HuggingFaceResponder
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline_tests.conftest import Killed
from fairness_pipeline_tests.models import tiny_models


def specification(folder: str, **changes: object) -> ModelSpecification:
    return ModelSpecification.model_validate(
        {
            "architecture": "causal_lm",
            "studies": ["dialogue_fairness"],
            "corpus": "tiny",
            "huggingface": {"name": folder, "prompt": "user : {context} bot :"},
            "decoding": {"max_tokens": 4, "keep_empty": True},
            "training": {
                "optimiser": "adam", "learning_rate": 0.01, "clipping": 1.0, "batch_tokens": 200, "epochs": 12,
                "patience": 12, "checkpoint_seconds": 0.0,
            },
            **changes,
        }
    )  # fmt: skip


def dialogues() -> pa.Table:
    colours = ("red", "green", "blue")
    rows = [
        {
            "dialogue_id": str(i),
            "context": f"what is {('the man', 'the woman')[i % 2]}",
            "response": ("red", "blue")[i % 2] if i % 4 < 3 else colours[i % 3],
            "split": "valid" if i % 8 == 0 else "train",
        }
        for i in range(160)
    ]
    return pa.Table.from_pylist(rows)


def test_the_loss_equals_the_librarys(tmp_path: Path) -> None:
    """Only the response's tokens count, and padding does not."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_models.causal_lm(tmp_path)).eval()
    contexts, responses = [[9, 10, 3, 4], [9, 10]], [[5, 2], [6, 7, 2]]
    data = CausalDialogues(contexts, responses)
    import numpy as np

    total, count = CausalDialogueModel(model)(data.batch(np.array([0, 1]), torch.device("cpu")))
    expected = 0.0
    for context, response in zip(contexts, responses, strict=True):
        tokens = torch.tensor([context + response])
        labels = torch.tensor([[-100] * len(context) + response])
        expected += model(input_ids=tokens, labels=labels).loss.item() * len(response)
    assert int(count) == 5
    assert total.item() == pytest.approx(expected, rel=1e-5)


def test_it_learns_and_answers_as_it_learned(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    spec = specification(tiny_models.causal_lm(tmp_path / "base"))
    figures = registry.prepare(spec, dialogues(), folder, seed=1)
    history = figures["validation_perplexities"]
    assert min(history) < history[0]
    assert figures["validation_perplexity"] < math.exp(1.0)
    contexts = pa.table({"text": ["what is the man", "what is the woman"]})
    answers = registry.responder(spec, folder, folder, seed=1)(contexts)["response"].to_pylist()
    assert answers == ["red", "blue"]


@pytest.mark.verify
def test_a_model_answers_in_bfloat16_but_is_not_trained_in_it(tmp_path: Path) -> None:
    base, weights = tiny_models.causal_lm(tmp_path / "given"), {}
    for dtype in ("float32", "bfloat16"):
        folder = tmp_path / dtype
        folder.mkdir()
        spec = specification(base, huggingface={"name": base, "prompt": "user : {context} bot :", "dtype": dtype})
        registry.prepare(spec, dialogues(), folder, seed=1)
        weights[dtype] = load_file(folder / "model.safetensors")
        answering, _ = HuggingFaceResponder(spec, folder, 1).model
        assert answering.dtype == getattr(torch, dtype)
    assert all(torch.equal(weights["bfloat16"][name], tensor) for name, tensor in weights["float32"].items())


def test_a_resumed_fine_tuning_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    spec = specification(tiny_models.causal_lm(tmp_path / "base"))
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    figures = registry.prepare(spec, dialogues(), whole, seed=4)

    def interrupt(done: int, total: int | None, note: str) -> None:
        if done == 7:
            raise Killed

    with pytest.raises(Killed):
        registry.prepare(spec, dialogues(), cut, seed=4, progress=interrupt)
    assert registry.prepare(spec, dialogues(), cut, seed=4) == figures
    assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


@pytest.mark.parametrize("method", ["cda", "wer"])
def test_a_causal_language_model_is_debiased(tmp_path: Path, method: str) -> None:
    """CDA shows both groups the same texts; WER draws their embeddings together: the planted gap closes."""
    base = tiny_models.causal_lm(tmp_path / "base")
    settings = {"k": 1.0} if method == "wer" else None
    spec = specification(base, base="gpt2", debiasing=method, settings=settings)
    training = spec.training.model_copy(update={"learning_rate": 0.03})
    spec = spec.model_copy(update={"training": training})
    folder = tmp_path / "made"
    folder.mkdir()
    task = Task(
        model=spec, words=(gender := load_dimension("gender")), groups=gender.groups, pairs=PairSettings(), scorings={}, significance=SignificanceSettings(), max_identical_share=0.75, profile_seed=1, dialogues=dialogues(), base=tmp_path,
        folder=folder, seed=1,
    )  # fmt: skip
    figures = debias(task)
    contexts = pa.table({"text": ["what is the man", "what is the woman"]})
    answers = registry.responder(spec, folder, folder, seed=1)(contexts)["response"].to_pylist()
    assert answers[0] == answers[1]
    if method == "cda":
        assert figures["added_dialogues"] == figures["training_dialogues"] / 2
    else:
        assert figures["pairs_drawn_together"] == 1
        distances = [
            (weights[tiny_models.WORDS.index("man")] - weights[tiny_models.WORDS.index("woman")]).norm()
            for weights in (
                load_file(tmp_path / "base" / "model.safetensors")["transformer.wte.weight"],
                load_file(folder / "model.safetensors")["model.transformer.wte.weight"],
            )
        ]
        assert distances[1] < 0.6 * distances[0]


def test_a_long_response_keeps_its_beginning_and_its_end_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(fine_tuning, "fit", lambda model, spec, train, valid, *rest: calls.append((train, valid)) or {})
    table = pa.table({"context": ["what"], "response": ["red green blue it is"], "split": ["train"]})
    spec = specification(tiny_models.causal_lm(tmp_path), decoding={"max_tokens": 3, "keep_empty": True})
    registry.prepare(spec, table, tmp_path, seed=1)
    ((train, valid),) = calls
    assert [tiny_models.WORDS[i] for i in train.response(0)] == ["red", "green", "</s>"]
    assert len(valid) == 0
