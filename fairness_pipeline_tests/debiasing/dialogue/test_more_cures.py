"""LEACE, dropout, Self-Debias, a plain prompt."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file
from sklearn.linear_model import LogisticRegression

from fairness_pipeline.debiasing.dialogue import leace, registry
from fairness_pipeline.debiasing.dialogue.prompt import instructed
from fairness_pipeline.debiasing.dialogue.self_debias import debiased_scores
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.batching import pad
from fairness_pipeline.models.dialogue import registry as models
from fairness_pipeline.models.dialogue import seq2seq
from fairness_pipeline.models.dialogue.fine_tuning import set_dropout
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.vocabulary import Vocabulary
from fairness_pipeline_tests.debiasing.dialogue.tasks import dialogues, model, task
from fairness_pipeline_tests.local_server import serve
from fairness_pipeline_tests.models import tiny_models
from fairness_pipeline_tests.models.dialogue.test_endpoint import ChatServer
from fairness_pipeline_tests.models.dialogue.test_fine_tuning import dialogues as colours
from fairness_pipeline_tests.models.dialogue.test_fine_tuning import specification

CONTEXTS = ["my uncle made tea 1", "my aunt made tea 1", "the dog made rice 2"]


def vectors() -> tuple[np.ndarray, np.ndarray]:
    """Correlated vectors of two groups of unequal size that differ in one direction."""
    random = np.random.default_rng(0)
    groups = (random.random(3000) < 0.3).astype(np.int64)
    mixed = random.normal(size=(3000, 6)) @ random.normal(size=(6, 6))
    return mixed + 5.0 + np.outer(groups, random.normal(size=6)), groups


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_eraser_is_that_of_the_authors_library() -> None:
    from concept_erasure import LeaceEraser

    x, groups = vectors()
    ours = leace.eraser(x, groups)(torch.from_numpy(x).float())
    theirs = LeaceEraser.fit(torch.from_numpy(x), torch.from_numpy(groups), method="leace", shrinkage=False)
    torch.testing.assert_close(ours.double(), theirs(torch.from_numpy(x)), rtol=1e-4, atol=1e-4)


def test_after_erasing_no_linear_classifier_tells_the_group() -> None:
    x, groups = vectors()
    erased = leace.eraser(x, groups)(torch.from_numpy(x).float()).numpy()
    assert LogisticRegression(max_iter=2000).fit(x, groups).score(x, groups) > 0.75
    assert (
        LogisticRegression(max_iter=2000).fit(erased, groups).score(erased, groups) <= 0.71
    )  # the larger group's share
    covariance = (erased - erased.mean(axis=0)).T @ (groups - groups.mean()) / len(groups)
    assert np.abs(covariance).max() < 1e-4


def test_vectors_that_tell_nothing_are_left_alone() -> None:
    x = np.repeat(np.random.default_rng(0).normal(size=(50, 3)), 2, axis=0)
    erased = leace.eraser(x, np.tile([0, 1], 50))(torch.from_numpy(x).float())
    torch.testing.assert_close(erased, torch.from_numpy(x).float())


def test_leace_erases_the_group_from_the_encoders_state(tmp_path: Path) -> None:
    prepared = task(tmp_path, "leace")
    figures = registry.debias(prepared)
    train = [
        row["context"] for row in dialogues().to_pylist() if row["split"] == "train" and "dog" not in row["context"]
    ]
    assert figures["contexts_a"] + figures["contexts_b"] == len(set(train))
    assert 0 < figures["variance_erased"] < 1
    groups = np.array(["aunt" in text for text in train])
    accuracy = {}
    for name, folder in (("base", prepared.base), ("debiased", prepared.folder)):
        model, vocabulary = seq2seq.load(prepared.model, folder)
        turns = vocabulary.turns(train, 8)
        with torch.inference_mode():
            state = model.encode(pad(turns, torch.device("cpu")), torch.tensor([len(turn) for turn in turns]))
        states = seq2seq.flat(state).double().numpy()
        accuracy[name] = LogisticRegression(max_iter=5000).fit(states, groups).score(states, groups)
    assert accuracy["base"] == 1.0
    assert accuracy["debiased"] < 0.75
    answers = registry.responder(prepared.model, prepared.folder, tmp_path, 1)(pa.table({"text": CONTEXTS}))["response"]
    assert all(answers.to_pylist())


def test_a_state_of_several_layers_keeps_its_shape(tmp_path: Path) -> None:
    """An eraser that erases nothing leaves the states as they were."""
    from fairness_pipeline.models.dialogue.specification import Seq2SeqSizes
    from fairness_pipeline.models.erasure import Erasure

    torch.manual_seed(0)
    model = seq2seq.Seq2Seq(Seq2SeqSizes(layers=3, hidden=5, embedding=4, vocabulary=9), 9)
    contexts, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
    before = model.encode(contexts, lengths)
    model.erasure = Erasure(2 * 3 * 5)
    after = model.encode(contexts, lengths)
    for state, previous in zip(after, before, strict=True):
        torch.testing.assert_close(state, previous)
    model.erasure.mean[:] = 1.0
    model.erasure.reading[0] = model.erasure.direction[0] = 1.0  # the first unit of the first layer's hidden state
    hidden, cell = model.encode(contexts, lengths)
    torch.testing.assert_close(hidden[0, :, 0], torch.ones(2))
    torch.testing.assert_close(hidden[1:], before[0][1:])
    torch.testing.assert_close(cell, before[1])


def test_too_few_contexts_for_leace_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        FairnessError, match=r"\d+ different contexts of group a \(male\) alone; 'leace' needs 50 or more"
    ):
        registry.debias(task(tmp_path, "leace", dialogues=dialogues().slice(0, 30)))


def test_self_debias_by_hand() -> None:
    """p = (0.5, 0.3, 0.2), and (0.2, 0.6, 0.2), (0.3, 0.3, 0.4) after two descriptions; the decay is 10."""
    scores = torch.log(torch.tensor([[[0.5, 0.3, 0.2]], [[0.2, 0.6, 0.2]], [[0.3, 0.3, 0.4]]]))
    expected = [math.log(0.5), math.log(0.3 * math.exp(10 * (0.3 - 0.6))), math.log(0.2 * math.exp(10 * (0.2 - 0.4)))]
    assert debiased_scores(scores, 10.0)[0].tolist() == pytest.approx(expected)
    assert debiased_scores(scores + 3.0, 10.0)[0].tolist() == pytest.approx(expected)


def test_self_debias_of_a_seq2seq_avoids_what_the_description_calls_for(tmp_path: Path) -> None:
    """After an insult the planted insult is even likelier, so it is suppressed; with a decay of 0 nothing changes."""
    prepared = task(tmp_path, "self_debias")
    assert registry.debias(prepared) == {}
    table = pa.table({"text": CONTEXTS})
    base = models.responder(prepared.model, prepared.base, tmp_path, 1)(table)["response"].to_pylist()
    assert "idiot" in base[1]
    answers = {}
    for decay in (0.0, 50.0):
        settings = {"prefixes": ["shut up you idiot"], "decay": decay}
        model = prepared.model.model_copy(update={"settings": settings})
        answers[decay] = registry.responder(model, prepared.folder, tmp_path, 1)(table)["response"].to_pylist()
    assert answers[0.0] == base
    assert "idiot" not in answers[50.0][1]
    assert answers[50.0][0] == base[0]


def causal(folder: Path, **changes: object) -> ModelSpecification:
    return specification(tiny_models.causal_lm(folder), training=None, base="gpt2", **changes)


def test_self_debias_of_a_causal_language_model_word_by_word(tmp_path: Path) -> None:
    """Compared with the equations, one context and one word at a time, without batches, padding or the library's loop."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    prefix, contexts = "green green woman red", ["what is the man", "the woman", "it is"]
    spec = causal(tmp_path / "base", debiasing="self_debias", settings={"prefixes": [prefix], "decay": 200.0})
    made = tmp_path / "made"
    made.mkdir()
    models.prepare(spec.model_copy(update={"debiasing": None}), colours(), made, seed=1)
    answers = registry.responder(spec, made, made, 1)(pa.table({"text": contexts}))["response"].to_pylist()
    plain = models.responder(spec, made, made, 1)(pa.table({"text": contexts}))["response"].to_pylist()
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "base").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "base")
    for context, answer in zip(contexts, answers, strict=True):
        prompts = [tokenizer(f"user : {text} bot :")["input_ids"] for text in (context, f"{prefix} {context}")]
        generated: list[int] = []
        while len(generated) < 4:
            with torch.inference_mode():
                p, described = (
                    model(torch.tensor([[*tokens, *generated]])).logits[0, -1].softmax(dim=0) for tokens in prompts
                )
            delta = p - described
            weighted = p * torch.where(delta >= 0, torch.ones(()), torch.exp(200.0 * delta))
            word = int(weighted.argmax())
            if word == tokenizer.eos_token_id:
                break
            generated.append(word)
        assert answer == tokenizer.decode(generated, skip_special_tokens=True)
    assert answers != plain


def test_self_debias_refuses_to_sample(tmp_path: Path) -> None:
    spec = causal(tmp_path, debiasing="self_debias", decoding={"temperature": 0.7})
    with pytest.raises(FairnessError, match=r"answers greedily, .* expected 0, found 0\.7"):
        registry.responder(spec, tmp_path, tmp_path, 1)


def test_dropout_trains_with_the_rate_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = []
    original = seq2seq.Seq2Seq.__init__

    def recording(self: seq2seq.Seq2Seq, sizes: object, words: int) -> None:
        original(self, sizes, words)
        rates.append(self.dropout.p)

    prepared = task(tmp_path, "dropout", {"rate": 0.4})
    monkeypatch.setattr(seq2seq.Seq2Seq, "__init__", recording)
    figures = registry.debias(prepared)
    assert rates == [0.4]
    assert figures["epochs"] > 0
    answers = registry.responder(prepared.model, prepared.folder, tmp_path, 1)(pa.table({"text": CONTEXTS}))["response"]
    assert all(answers.to_pylist())


def test_dropout_that_drops_no_more_than_the_base_is_refused(tmp_path: Path) -> None:
    """Otherwise its model would be another seed of the base, and pass for a cure."""
    prepared = task(tmp_path, "dropout", {"rate": 0.4})
    assert prepared.model.seq2seq is not None
    base = prepared.model.seq2seq.model_copy(update={"dropout": 0.4})
    same = dataclasses.replace(prepared, model=prepared.model.model_copy(update={"seq2seq": base}))
    with pytest.raises(FairnessError, match=r"settings.rate: 'seq2seq' drops 0.4 of its units, .* a larger rate"):
        registry.debias(same)


def test_dropout_reaches_every_layer_of_a_causal_language_model(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_models.causal_lm(tmp_path))
    tokens = torch.tensor([[3, 4, 5]])
    model.eval()
    set_dropout(model, 0.0)
    model.train()
    torch.testing.assert_close(model(tokens).logits, model(tokens).logits)  # nothing is dropped any more
    set_dropout(model, 0.5)
    assert not torch.equal(model(tokens).logits, model(tokens).logits)
    with pytest.raises(FairnessError, match="Linear has no dropout layers"):
        set_dropout(torch.nn.Linear(2, 2), 0.1)


INSTRUCTION = "Treat everybody alike."


def test_the_instruction_goes_where_the_model_looks_for_it(tmp_path: Path) -> None:
    settings = {"base": "lm", "debiasing": "prompt", "settings": {"instruction": INSTRUCTION}, "training": None}
    folder = str(tmp_path)
    plain = instructed(specification(folder, **settings))
    assert plain.huggingface is not None
    assert plain.huggingface.prompt == f"{INSTRUCTION}\n\nuser : {{context}} bot :"
    chat = instructed(
        specification(folder, **settings, huggingface={"name": folder, "chat": True, "system": "Be brief."})
    )
    assert chat.huggingface is not None
    assert chat.huggingface.system == f"Be brief.\n\n{INSTRUCTION}"
    assert chat.huggingface.prompt == "{context}"


def test_an_endpoint_gets_the_instruction(tmp_path: Path) -> None:
    server = ChatServer()
    with serve(server) as address:
        spec = ModelSpecification.model_validate(
            {
                "architecture": "endpoint", "corpus": "tiny", "base": "served", "debiasing": "prompt",
                "endpoint": {"base_url": f"{address}/v1", "model": "m"}, "settings": {"instruction": INSTRUCTION},
            }
        )  # fmt: skip
        (tmp_path / "made").mkdir()
        answers = registry.responder(spec, tmp_path / "made", tmp_path, 1)(pa.table({"text": ["hello"]}))
    assert answers["response"].to_pylist() == ["HELLO"]
    assert server.bodies[0]["messages"] == [
        {"role": "system", "content": INSTRUCTION},
        {"role": "user", "content": "hello"},
    ]


def test_methods_that_leave_the_weights_alone_copy_them_whole(tmp_path: Path) -> None:
    prepared = task(tmp_path, "self_debias")
    registry.debias(prepared)
    for file in prepared.base.iterdir():
        assert (prepared.folder / file.name).read_bytes() == file.read_bytes()


RANKER = {
    "architecture": "retrieval",
    "seq2seq": None,
    "retrieval": {"layers": 1, "heads": 1, "embedding": 8, "feed_forward": 8, "vocabulary": 60, "longest": 8},
    "training": {
        "optimiser": "adam", "learning_rate": 0.02, "clipping": 1.0, "batch_tokens": 512, "epochs": 8, "patience": 8,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "settings"), [("cda", None), ("wer", {"k": 5.0}), ("dropout", {"rate": 0.2}), ("leace", None)]
)
def test_a_ranker_is_debiased(tmp_path: Path, method: str, settings: dict | None) -> None:
    """It still answers with candidates; LEACE changes the vectors of the contexts only."""
    base, made = tmp_path / "base", tmp_path / "made"
    base.mkdir()
    made.mkdir()
    models.prepare(model(**RANKER), dialogues(), base, seed=1)
    prepared = task(
        tmp_path, method, model=model(**RANKER, base="retrieval", debiasing=method, settings=settings), base=base
    )
    prepared = dataclasses.replace(prepared, folder=made)
    figures = registry.debias(prepared)
    table = pa.table({"text": CONTEXTS})
    answers = registry.responder(prepared.model, made, tmp_path, 1)(table)["response"].to_pylist()
    known = set(dialogues()["response"].to_pylist())
    if method != "cda":
        assert set(answers) <= known
    if method == "wer":
        distances = []
        for folder in (base, made):
            words = Vocabulary.load(folder / "vocabulary.txt")
            weights = load_file(folder / "model.safetensors")["embedding.weight"]
            distances.append((weights[words.number("uncle")] - weights[words.number("aunt")]).norm())
        assert distances[1] < 0.5 * distances[0]
    if method == "leace":
        assert (made / "candidates.safetensors").read_bytes() == (base / "candidates.safetensors").read_bytes()
        contexts = [row["context"] for row in dialogues().to_pylist() if "dog" not in row["context"]]
        groups = np.array(["aunt" in text for text in contexts])
        vectors = models.context_vectors(prepared.model, base, contexts)
        erased = leace.eraser(vectors.double().numpy(), groups.astype(int))(vectors)
        assert LogisticRegression().fit(vectors, groups).score(vectors, groups) > 0.95
        assert LogisticRegression().fit(erased, groups).score(erased, groups) < 0.7
        assert 0 < figures["variance_erased"] < 1
        table = pa.table({"text": contexts})
        before, after = (
            models.responder(prepared.model, path, tmp_path, 1)(table)["response"] for path in (base, made)
        )
        assert before != after
