"""Counterpart data augmentation, word embedding regularisation, filtered candidates."""

import csv
import gzip
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from fairness_pipeline.debiasing.dialogue.biased_text import BiasScorer
from fairness_pipeline.debiasing.dialogue.counterpart_data_augmentation import augment
from fairness_pipeline.debiasing.dialogue.registry import debias
from fairness_pipeline.debiasing.dialogue.word_embedding_regularization import PairDistance
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.measures.dialogue.registry import marking, scorings
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.vocabulary import Vocabulary
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline_tests.debiasing.dialogue.tasks import OBJECTS, dialogues, task


def test_augmentation_by_hand() -> None:
    table = pa.table(
        {
            "dialogue_id": ["1", "2", "3", "4"],
            "context": ["My dad left", "it rains", "it rains", "my dad left"],
            "response": ["poor boy", "so what", "ask your Aunt", "poor boy"],
            "split": ["train", "train", "train", "valid"],
        }
    )
    rows = augment(table, Swapper(load_dimension("gender"))).to_pylist()
    assert rows[:4] == table.to_pylist()
    assert rows[4:] == [
        {"dialogue_id": "1", "context": "My mom left", "response": "poor girl", "split": "train"},
        {"dialogue_id": "3", "context": "it rains", "response": "ask your Uncle", "split": "train"},
    ]
    duplicated = augment(table, Swapper(load_dimension("gender")), swap=False).to_pylist()
    assert duplicated == [*table.to_pylist(), table.to_pylist()[0], table.to_pylist()[2]]


def test_augmentation_swaps_both_directions_at_once() -> None:
    table = pa.table(
        {
            "dialogue_id": ["1"],
            "context": ["he likes his aunt"],
            "response": ["the king and the queen"],
            "split": ["train"],
        }
    )
    added = augment(table, Swapper(load_dimension("gender"))).to_pylist()[1]
    assert (added["context"], added["response"]) == ("she likes her uncle", "the queen and the king")


@pytest.mark.parametrize("dimension", ["gender", "dialect", "race"])
def test_augmentation_adds_one_for_each_dialogue_with_a_listed_word(dimension: str, corpora: Path) -> None:
    """On real tweets: the size is the originals plus those with a listed word (of the training split)."""
    with gzip.open(corpora / "dialogues" / "twitter_sarcasm_figlang2020.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))[:4000]
    turns = [(row["context"], row["response"]) for row in rows]
    table = pa.table(
        {
            "dialogue_id": [str(i) for i in range(len(turns))],
            "context": [turn[0] for turn in turns],
            "response": [turn[1] for turn in turns],
            "split": ["train"] * len(turns),
        }
    )
    swapper = Swapper(load_dimension(dimension))
    listed = sum(bool(swapper.find(a) or swapper.find(b)) for a, b in turns)
    assert augment(table, swapper).num_rows == len(turns) + listed


@pytest.mark.parametrize("method", ["cda", "duplication"])
def test_a_model_is_trained_on_what_was_added(method: str, tmp_path: Path) -> None:
    figures = debias(task(tmp_path, method))
    train = dialogues().filter(pc.equal(dialogues()["split"], "train")).num_rows
    assert figures["added_dialogues"] == figures["training_dialogues"] - train == 140
    assert figures["validation_dialogues"] == 30


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("cda", "'cda' adds nothing"),
        ("duplication", "'duplication' adds nothing"),
        ("wer", "none of the [0-9]+ pairs, so 'wer' has nothing"),
    ],
)
def test_a_method_with_nothing_to_do_says_so(method: str, message: str, tmp_path: Path) -> None:
    """Otherwise its model would be another seed of the base, and pass for a cure."""
    nobody = dialogues().filter(pc.match_substring(dialogues()["context"], "dog"))
    with pytest.raises(FairnessError, match=message):
        debias(task(tmp_path, method, dialogues=nobody, words=load_dimension("religion1")))


def test_distance_of_pairs_by_hand() -> None:
    embedding = nn.Embedding(6, 2)
    embedding.weight.data = torch.tensor([[0.0, 0], [3, 4], [0, 0], [2, 0], [4, 0], [0, 9]])
    rows = {"he": [1], "she": [2], "step dad": [3, 4], "step mom": [5], "boy": [1], "girl": []}
    distance = PairDistance([("he", "she"), ("step dad", "step mom"), ("boy", "girl")], embedding, rows.__getitem__)
    assert (len(distance), distance.unknown) == (2, 1)
    # |(3,4) - (0,0)| = 5; |mean((2,0),(4,0)) - (0,9)| = |(3,-9)|
    assert distance().item() == pytest.approx(5 + 90**0.5)
    distance().backward()
    assert embedding.weight.grad[1].tolist() == pytest.approx([0.6, 0.8])
    assert embedding.weight.grad[3].tolist() == pytest.approx((torch.tensor([3.0, -9]) / 90**0.5 / 2).tolist())
    assert embedding.weight.grad[0].tolist() == [0, 0]


def test_equal_embeddings_have_a_gradient_of_zero_not_nan() -> None:
    embedding = nn.Embedding(2, 3)
    embedding.weight.data[:] = 1.0
    distance = PairDistance([("a", "b")], embedding, {"a": [0], "b": [1]}.__getitem__)
    distance().backward()
    assert distance().item() == 0
    assert embedding.weight.grad.abs().sum() == 0


def test_no_known_pair_adds_nothing() -> None:
    assert PairDistance([("a", "b")], nn.Embedding(2, 3), lambda text: [])().item() == 0


def test_regularisation_draws_paired_words_together_and_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "strong").mkdir()
    (tmp_path / "none").mkdir()
    tasks = {name: task(tmp_path / name, "wer", {"k": k}) for name, k in (("strong", 5.0), ("none", 1e-9))}
    figures = {name: debias(prepared) for name, prepared in tasks.items()}
    assert figures["strong"]["pairs_drawn_together"] == 1
    distances = {}
    for name, prepared in tasks.items():
        words = Vocabulary.load(prepared.folder / "vocabulary.txt").words
        weights = load_file(prepared.folder / "model.safetensors")["embedding.weight"]
        norms = [
            (weights[words.index(a)] - weights[words.index(b)]).norm() for a, b in (("uncle", "aunt"), ("tea", "soup"))
        ]
        distances[name] = [float(norm) for norm in norms]
    assert distances["strong"][0] < 0.5 * distances["none"][0]
    assert distances["strong"][1] > 0.8 * distances["none"][1]


@pytest.mark.verify
def test_clipped_together_the_regularisation_takes_the_step_of_learning(tmp_path: Path) -> None:
    """Over seeds, with SGD and a clipped gradient: `as_printed` has a worse perplexity than no regularisation, and
    `apart` does not, at the same distances."""
    relatives = [("uncle", "aunt"), ("king", "queen"), ("boy", "girl"), ("son", "daughter"), ("father", "mother")]
    rows = [
        {"dialogue_id": f"{n}", "context": f"my {relatives[n % 5][n % 2]} made {OBJECTS[n % 6]}",
         "response": f"a {relatives[n % 5][n % 2]} likes {OBJECTS[n % 6]}", "split": "valid" if n % 8 == 0 else "train"}
        for n in range(400)
    ]  # fmt: skip
    sgd = {"optimiser": "sgd", "learning_rate": 1.0, "clipping": 0.1, "batch_tokens": 64, "epochs": 12, "patience": 12}
    perplexity: dict[str, list[float]] = {}
    for seed in range(3):
        for name, settings in {
            "none": {"k": 1e-9},
            "apart": {"k": 0.5},
            "as_printed": {"k": 0.5, "clip": "as_printed"},
        }.items():
            (tmp_path / f"{name}{seed}").mkdir()
            prepared = task(
                tmp_path / f"{name}{seed}", "wer", settings, dialogues=pa.Table.from_pylist(rows), seed=seed
            )
            training = prepared.model.training.model_copy(update=sgd)
            figures = debias(replace(prepared, model=prepared.model.model_copy(update={"training": training})))
            perplexity.setdefault(name, []).append(figures["validation_perplexity"])
    unregularised, apart, printed = (sum(perplexity[name]) / 3 for name in ("none", "apart", "as_printed"))
    assert printed > 1.2 * unregularised, perplexity
    assert apart < 1.1 * unregularised, perplexity


def test_the_weight_of_the_regularisation_acts_though_its_gradient_is_clipped(tmp_path: Path) -> None:
    distances = []
    sgd = {"optimiser": "sgd", "learning_rate": 1.0, "clipping": 0.1, "batch_tokens": 256, "epochs": 2, "patience": 2}
    for k in (0.05, 0.5):
        (tmp_path / str(k)).mkdir()
        prepared = task(tmp_path / str(k), "wer", {"k": k})
        training = prepared.model.training.model_copy(update=sgd)
        debias(replace(prepared, model=prepared.model.model_copy(update={"training": training})))
        words = Vocabulary.load(prepared.folder / "vocabulary.txt").words
        weights = load_file(prepared.folder / "model.safetensors")["embedding.weight"]
        distances.append(float((weights[words.index("uncle")] - weights[words.index("aunt")]).norm()))
    assert distances[1] < 0.8 * distances[0], distances


def test_filtered_candidates_hold_nothing_biased_and_the_rest_answers_as_before(tmp_path: Path) -> None:
    specification = ModelSpecification.model_validate(
        {
            "architecture": "retrieval", "studies": ["dialogue_fairness"], "corpus": "tiny",
            "retrieval": {"layers": 1, "heads": 1, "embedding": 8, "feed_forward": 8, "vocabulary": 60},
            "training": {
                "optimiser": "adam", "learning_rate": 0.01, "clipping": 1.0, "batch_tokens": 256, "epochs": 1, "patience": 1,
            },
        }
    )  # fmt: skip
    base = tmp_path / "base"
    base.mkdir()
    registry.prepare(specification, dialogues(), base, seed=1)
    prepared = task(
        tmp_path,
        "filtered",
        model=specification.model_copy(update={"base": "retrieval", "debiasing": "filtered"}),
        base=base,
    )
    figures = debias(prepared)
    before, after = (
        pq.read_table(folder / "candidates.parquet")["response"].to_pylist() for folder in (base, prepared.folder)
    )
    assert {text for text in before if text not in after} == {text for text in before if "idiot" in text}
    assert figures["candidates"] == len(after) == len(before) - figures["candidates_left_out"]

    contexts = pa.table({"text": ["my uncle made tea 1", "my aunt made soup 2"]})
    answers = [
        registry.responder(specification, folder, folder, 1)(contexts)["response"].to_pylist()
        for folder in (base, prepared.folder)
    ]
    assert set(answers[1]) <= set(after)
    assert all(new == old for old, new in zip(*answers, strict=True) if old in after)


def test_no_candidate_left_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"response": ["shut up you idiot", "you stupid idiot"]}), tmp_path / "candidates.parquet")
    from safetensors.torch import save_file

    save_file({"vectors": torch.zeros(2, 3)}, tmp_path / "candidates.safetensors")
    prepared = task(tmp_path, "filtered", base=tmp_path)
    with pytest.raises(FairnessError, match="all 2 candidates are biased"):
        debias(prepared)


def test_what_counts_as_biased() -> None:
    scorer = BiasScorer(scorings(marking(), MeasureSettings(), load_dimension("gender")))
    texts = pa.array(
        ["i like tea", "you stupid idiot", "at the wedding", "great , love it , happy happy joy !", "i like tea"]
    )
    assert scorer.biased(texts).tolist() == [False, True, True, True, False]
    assert scorer.biased(pa.array([], pa.string())).tolist() == []
