"""LMD, ADD, HD and CDA against numbers worked out by hand, and the grid search."""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file

from fairness_pipeline.debiasing.language.attribute_distance import AttributeDistance
from fairness_pipeline.debiasing.language.counterfactual_augmentation import as_they_are, augmented
from fairness_pipeline.debiasing.language.hard_debiasing import HardDebiasing, bias_subspace
from fairness_pipeline.debiasing.language.language_model_debiasing import LanguageModelDebiasing
from fairness_pipeline.debiasing.language.loss import Weighted, collate, examples_of
from fairness_pipeline.debiasing.language.registry import debias
from fairness_pipeline.debiasing.language.task import Task
from fairness_pipeline.debiasing.language.terms import TermVectors
from fairness_pipeline.lexicons.counterfactuals import COUNTERFACTUAL_PHRASES
from fairness_pipeline.lexicons.stereotypes import Lexicon, stereotypes_of
from fairness_pipeline.models.language import fine_tuning, registry
from fairness_pipeline.models.language.specification import LanguageModelSpecification
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline_tests.conftest import Killed
from fairness_pipeline_tests.models.language.tiny import TEXTS, trained

VECTORS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]])  # a, b, and another b
PAIRS = torch.tensor([[0, 1], [0, 2]])


def test_lmd_by_hand() -> None:
    """|log y1/y2| is the difference of the logits: with h = (2, 1) they are 2, 1 and 10."""
    hidden = torch.tensor([[2.0, 1.0], [0.0, 0.0]])
    loss = LanguageModelDebiasing()
    assert float(loss(hidden, (1, [0]), VECTORS, PAIRS)) == pytest.approx(abs(1 - 2))
    assert float(loss(hidden, (1, [0, 1]), VECTORS, PAIRS)) == pytest.approx((1 + 8) / 2)


def test_add_by_hand() -> None:
    """a is the mean of its tokens, (1, 1): cos to (1, 0) and (0, 1) is 0.7071, to (3, 4) 0.9899."""
    hidden = torch.tensor([[9.0, 9.0], [2.0, 0.0], [0.0, 2.0]])
    expected = abs(math.sqrt(0.5) - math.sqrt(0.5)) + abs(7 / (5 * math.sqrt(2)) - math.sqrt(0.5))
    assert float(AttributeDistance()(hidden, (1, 3), VECTORS, PAIRS)) == pytest.approx(expected)


def test_hd_by_hand() -> None:
    """Half differences (-4, 0, 0) and (0, 3, 0) (of three): squared singular values 16 and 9; the first explains 0.64."""
    vectors = torch.tensor([[0.0, 0, 0], [-8.0, 0, 0], [0, 6.0, 0]])
    pairs = torch.tensor([[0, 1], [0, 2]])
    subspace = bias_subspace(vectors, pairs, 0.5)
    assert subspace.shape == (1, 3) and abs(float(subspace[0, 0])) == pytest.approx(1)
    hidden = torch.tensor([[2.0, 5.0, 7.0]])
    assert float(HardDebiasing(0.5)(hidden, (0, 1), vectors, pairs)) == pytest.approx(2)
    assert float(HardDebiasing(0.9)(hidden, (0, 1), vectors, pairs)) == pytest.approx(2 + 5)
    # 16 of 16 + 16 + 1 is under a half: two directions, the sum of both projections.
    wider = torch.tensor([[0.0, 0, 0], [-8.0, 0, 0], [0, 8.0, 0], [0, 0, 2.0]])
    three = torch.tensor([[0, 1], [0, 2], [0, 3]])
    assert bias_subspace(wider, three, 0.5).shape == (2, 3)
    # Any rotation within the plane of the first two axes is as good: |2 cos - 5 sin| + |2 sin + 5 cos|.
    length = math.hypot(2, 5)
    assert length - 1e-5 <= float(HardDebiasing(0.5)(hidden, (0, 1), wider, three)) <= math.sqrt(2) * length + 1e-5


def test_the_number_of_directions_is_that_of_numpys_svd() -> None:
    """The smallest k whose squared singular values make up half of the squared Frobenius norm."""
    draw = np.random.default_rng(1)
    for _ in range(20):
        vectors = torch.from_numpy(draw.normal(size=(24, 16)) * draw.uniform(0.1, 3, 16)).float()
        pairs = torch.from_numpy(draw.permutation(24).reshape(12, 2))
        halves = (vectors[pairs[:, 1]] - vectors[pairs[:, 0]]).numpy() / 2
        values = np.linalg.svd(halves, compute_uv=False)
        k = 1 + int(np.sum(np.cumsum(values**2) / np.sum(halves**2) < 0.5))
        subspace = bias_subspace(vectors, pairs, 0.5)
        assert subspace.shape == (k, 16)
        _, _, directions = np.linalg.svd(halves)
        assert np.abs(subspace.numpy() @ directions[:k].T) == pytest.approx(np.eye(k), abs=1e-3)


def test_no_gradient_goes_through_the_subspace() -> None:
    vectors = torch.tensor([[0.0, 0, 0], [-8.0, 0, 0]], requires_grad=True)
    hidden = torch.tensor([[2.0, 5.0, 7.0]], requires_grad=True)
    HardDebiasing(0.5)(hidden, (0, 1), vectors, torch.tensor([[0, 1]])).backward()
    assert vectors.grad is None
    assert hidden.grad.tolist() == [[pytest.approx(1), 0, 0]]


def test_where_terms_stand_and_their_vectors(tmp_path: Path) -> None:
    """A term of several tokens has their mean vector (footnote 12); the first term of a text is predicted from nothing."""
    model, tokenizer = registry.load(trained(tmp_path / "m"), tmp_path / "m")
    lexicon = Lexicon(stereotypes_of(load_dimension("religion1")))
    terms = TermVectors(tokenizer, lexicon)
    weights = model.get_output_embeddings().weight
    pair = terms.pairs.tolist()[2]
    assert [lexicon.pairs[2][0], lexicon.pairs[2][1]] == ["christians", "jews"]
    for row, term in zip(pair, lexicon.pairs[2], strict=True):
        tokens = [token for token in tokenizer(f" {term}")["input_ids"] if tokenizer.decode(token).strip()]
        assert tokens and torch.allclose(terms.vectors(model)[row], weights[tokens].mean(0))
    text = "jews say all jews are greedy"
    (places,) = terms.places([text], None)
    tokens = tokenizer(text)["input_ids"]
    assert places.input_ids == tokens
    (first_target, (first, rows)) = places.targets
    assert first_target == (0, [2]) and rows == [2] and tokenizer.decode(tokens[first:]).strip() == "jews are greedy"
    ((start, end),) = places.attributes
    assert tokenizer.decode(tokens[start:end]).strip() == "greedy"


def test_the_blank_piece_before_a_text_is_no_part_of_a_term() -> None:
    """A tokenizer like Llama 2's: blanks become `▁`, and another `▁` precedes each text."""
    from tokenizers import Tokenizer, decoders, models, normalizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE(unk_token="<unk>"))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Replace("▁", " ")
    words = ["they", "say", "jews", "jewish", "christians", "christian", "are", "greedy"]
    trainer = trainers.BpeTrainer(special_tokens=["<unk>"], show_progress=False)
    backend.train_from_iterator(words * 9, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    blank = "▁"
    assert tokenizer.tokenize(" jews")[0] == blank  # what this test is about
    terms = TermVectors(tokenizer, Lexicon(stereotypes_of(load_dimension("religion1"))))
    (places,) = terms.places(["they say jews are greedy"], None)
    (first, _), *_ = places.targets
    term_tokens = places.input_ids[first : first + len(terms._tokens[terms._terms.index("jews")])]
    assert terms._tokens[terms._terms.index("jews")] == term_tokens
    assert tokenizer.convert_tokens_to_ids(blank) not in term_tokens


def test_a_phrase_without_a_term_costs_language_modelling_alone(tmp_path: Path) -> None:
    model, tokenizer = registry.load(trained(tmp_path / "m"), tmp_path / "m")
    terms = TermVectors(tokenizer, Lexicon(stereotypes_of(load_dimension("religion1"))))
    with_term, without = "all jews are greedy", "the phone is new"

    def cost(texts: list[str], lm: float, d: float) -> float:
        batch = collate(examples_of(terms.places(texts, None)))
        return float(Weighted(LanguageModelDebiasing(), terms, lm, d)(model, batch).detach())

    def plain(text: str) -> float:
        batch = fine_tuning.padded([{"input_ids": tokenizer(text)["input_ids"]}])
        return float(fine_tuning.language_modelling(model, batch).detach())

    assert cost([without], 0.01, 50) == pytest.approx(plain(without), rel=1e-5)
    assert cost([with_term], 1.0, 0.0) == pytest.approx(plain(with_term), rel=1e-5)
    assert cost(["jews are greedy"], 0.01, 50) == pytest.approx(0.01 * plain("jews are greedy"), rel=1e-5)
    debiasing_loss = cost([with_term], 0.0, 1.0)
    assert cost([with_term], 0.01, 50) == pytest.approx(0.01 * plain(with_term) + 50 * debiasing_loss, rel=1e-5)
    assert cost([with_term, without], 0.01, 50) == pytest.approx(
        (cost([with_term], 0.01, 50) + plain(without)) / 2, rel=1e-5
    )


def phrases() -> pa.Table:
    rows = [
        ("train", "all jews are greedy", "all christians are greedy"),
        ("train", "some jews are tall", "some christians are tall"),
        ("train", "a loud jew", "a loud christian"),
        *[(split, f"{word} jews are loud", f"{word} christians are loud")
          for split in ("dev", "test") for word in ("all", "some", "my", "new", "tall", "busy")],
    ]  # fmt: skip
    return pa.Table.from_pylist(
        [
            {"phrase_id": str(n), "comment_id": str(n), "split": split, "target": "jews", "text_a": a, "text_b": b}
            for n, (split, b, a) in enumerate(rows)
        ],
        schema=COUNTERFACTUAL_PHRASES,
    )


def test_cda_adds_the_counterfactuals_of_phrases_with_an_attribute() -> None:
    lexicon = Lexicon(stereotypes_of(load_dimension("religion1")))
    originals = ["all jews are greedy", "some jews are tall", "a loud jew"]
    assert augmented(phrases(), lexicon) == [*originals, "all christians are greedy", "a loud christian"]
    assert as_they_are(phrases(), lexicon) == [*originals, "all jews are greedy", "a loud jew"]  # as many updates


@pytest.mark.parametrize("method", ["lmd", "add", "hd", "cda", "plain"])
def test_each_method_leaves_a_model(tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The point with the highest p is kept; a killed search resumes to the same model."""
    base_model = trained(tmp_path / "base")
    grid = {"batch": [2], "accumulation": [1], "lambda_lm": [0.01], "lambda_d": [1, 100], "learning_rate": 0.01}
    settings = grid if method in ("lmd", "add", "hd") else {"learning_rate": 0.01}
    model = base_model.model_copy(update={"base": "x", "debiasing": method, "settings": settings})
    lexicon = Lexicon(stereotypes_of(load_dimension("religion1")))

    def run(folder: Path) -> dict:
        folder.mkdir(exist_ok=True)
        return debias(Task(model, lexicon, phrases(), TEXTS[:8], tmp_path / "base", folder, 1))

    figures = run(tmp_path / "whole")
    registry.load(model, tmp_path / "whole")
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    assert not [name for name in names if name.startswith(("point", "candidate", "training", "trainer"))]
    if "grid" not in figures:
        return
    p = [point["p"] for point in figures["grid"]]
    assert len(p) == 2 and p[figures["chosen"]] == max(p)
    assert [point["lambda_d"] for point in figures["grid"]] == [1, 100]

    plain, points = fine_tuning.train, 0

    def killed(*arguments, **options):
        nonlocal points
        points += 1
        if points == 2:
            raise Killed
        plain(*arguments, **options)

    monkeypatch.setattr(fine_tuning, "train", killed)
    with pytest.raises(Killed):
        run(tmp_path / "killed")
    assert json.loads((tmp_path / "killed" / "point-0.json").read_text())["p"] == p[0]
    monkeypatch.setattr(fine_tuning, "train", plain)
    assert run(tmp_path / "killed") == figures
    assert (tmp_path / "killed" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


def test_a_model_in_bfloat16_is_trained_in_32_bits_and_answers_in_bfloat16(tmp_path: Path) -> None:
    """In bfloat16 most weights would not move at the paper's learning rate; both formats leave the same weights."""
    trained(tmp_path / "given")
    weights = {}
    for dtype in ("float32", "bfloat16"):
        model = LanguageModelSpecification.model_validate(
            {"architecture": "causal_lm", "huggingface": {"name": str(tmp_path / "given"), "dtype": dtype},
             "base": "x", "debiasing": "plain"}
        )  # fmt: skip
        base, folder = tmp_path / f"base-{dtype}", tmp_path / dtype
        base.mkdir(), folder.mkdir()
        registry.prepare(model, [], base, 1)
        debias(Task(model, Lexicon(stereotypes_of(load_dimension("religion1"))), phrases(), TEXTS[:8], base, folder, 1))
        weights[dtype] = load_file(folder / "model.safetensors")
        assert {tensor.dtype for tensor in weights[dtype].values()} == {torch.float32}
        for model_folder in (base, folder):
            assert registry.load(model, model_folder)[0].dtype == getattr(torch, dtype)
        assert registry.load(model, base, trains=True)[0].dtype == torch.float32
    first = load_file(tmp_path / "given" / "model.safetensors")
    for name, tensor in weights["bfloat16"].items():
        assert torch.equal(tensor, weights["float32"][name])
    moved = sum(int((tensor != first[name]).sum()) for name, tensor in weights["bfloat16"].items())
    assert moved > 0.8 * sum(tensor.numel() for tensor in first.values())
