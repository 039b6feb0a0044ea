import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.batching import EncodedDialogues
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.dialogue.responding import respond
from fairness_pipeline.models.dialogue.seq2seq import Seq2Seq, Seq2SeqResponder
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.training import Trainer, perplexity
from fairness_pipeline.models.vocabulary import END, PAD, START, UNKNOWN, Vocabulary
from fairness_pipeline_tests.conftest import Killed

CPU = torch.device("cpu")


def specification(**training: object) -> ModelSpecification:
    return ModelSpecification(
        architecture="seq2seq",
        studies=("dialogue_fairness",),
        corpus="c",
        seq2seq={"layers": 2, "hidden": 12, "embedding": 6, "vocabulary": 60, "dropout": 0.2, "longest": 8},
        training={
            "optimiser": "adam", "learning_rate": 0.02, "clipping": 1.0, "batch_tokens": 200, "epochs": 3, "patience": 3,
            "checkpoint_seconds": 0.0, **training,
        },
        device="cpu",
    )  # fmt: skip


def dialogues(rows: int = 120) -> pa.Table:
    colours = ["red", "green", "blue"]
    return pa.table(
        {
            "context": [f"what is {'very ' * (i % 4)}{colours[i % 3]} number {i % 7}" for i in range(rows)],
            "response": [f"{colours[i % 3]} it is" for i in range(rows)],
            "split": ["valid" if i % 6 == 0 else "train" for i in range(rows)],
        }
    )


def test_vocabulary(tmp_path: Path) -> None:
    vocabulary = Vocabulary.build(["b a a", "B c", "d"], size=7)
    assert vocabulary.words == ["<pad>", "<unk>", "<s>", "</s>", "a", "b", "c"]  # ties by the alphabet
    assert vocabulary.encode("A d b c", longest=3) == [4, UNKNOWN, 5]
    vocabulary.save(tmp_path / "v.txt")
    assert Vocabulary.load(tmp_path / "v.txt").words == vocabulary.words


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=80),
    st.integers(4, 90),
    st.one_of(st.none(), st.integers(0, 9)),
)
@settings(max_examples=100, deadline=None)
def test_batches_hold_each_dialogue_once_within_the_budget(
    lengths: list[tuple[int, int]], budget: int, seed: int | None
) -> None:
    encoded = EncodedDialogues.of_texts(
        *(["w " * length for length in side] for side in zip(*lengths, strict=True)), Vocabulary(["w"]), longest=30
    )
    batches = encoded.batches(budget, seed)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for indices in batches:
        assert len(indices) == 1 or len(indices) * (encoded.lengths[indices].max() + 2) <= budget


def test_padding_and_marks() -> None:
    vocabulary = Vocabulary(["a", "b"])
    encoded = EncodedDialogues.of_texts(["a b", ""], ["b", "a b"], vocabulary, longest=5)
    batch = encoded.batch(np.array([0, 1]), CPU)
    assert batch.contexts.tolist() == [[4, 5], [END, PAD]]  # an empty context still has one token
    assert batch.lengths.tolist() == [2, 1]
    assert batch.responses.tolist() == [[START, 5, END, PAD], [START, 4, 5, END]]


def test_the_loss_does_not_depend_on_padding() -> None:
    """A batch's summed loss is the sum of its dialogues' losses, computed one by one."""
    torch.manual_seed(0)
    spec = specification()
    model = Seq2Seq(spec.seq2seq, 8).eval()
    vocabulary = Vocabulary(["a", "b", "c", "d"])
    encoded = EncodedDialogues.of_texts(["a b c d", "a", "d c"], ["b", "a b c d", "c"], vocabulary, longest=8)
    together, words = model(encoded.batch(np.arange(3), CPU))
    apart = [model(encoded.batch(np.array([i]), CPU)) for i in range(3)]
    assert together.item() == pytest.approx(sum(loss.item() for loss, _ in apart), rel=1e-5)
    assert words == sum(count for _, count in apart) == 1 + 4 + 1 + 3  # with the end mark of each response


def test_the_loss_is_the_negative_log_likelihood() -> None:
    """With an output layer of zeros every word has probability 1 / V."""
    spec = specification()
    model = Seq2Seq(spec.seq2seq, 8).eval()
    torch.nn.init.zeros_(model.output.weight)
    torch.nn.init.zeros_(model.output.bias)
    encoded = EncodedDialogues.of_texts(["a"], ["a b"], Vocabulary(["a", "b", "c", "d"]), longest=8)
    assert model(encoded.batch(np.array([0]), CPU))[0].item() == pytest.approx(3 * np.log(8), rel=1e-5)


def test_answers_are_never_empty_nor_unknown_and_depend_on_their_context_alone() -> None:
    torch.manual_seed(1)
    spec = specification()
    model = Seq2Seq(spec.seq2seq, 9).eval()
    torch.nn.init.zeros_(model.output.weight)
    model.output.bias.data = torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0])  # marks are likeliest
    contexts = torch.tensor([[4, 5, 6], [7, PAD, PAD]])
    assert model.answer(contexts, torch.tensor([3, 1]), longest=5) == [[4], [4]]

    torch.manual_seed(2)
    model = Seq2Seq(spec.seq2seq, 9).eval()
    together = model.answer(contexts, torch.tensor([3, 1]), longest=6)
    apart = [
        model.answer(contexts[:1], torch.tensor([3]), 6)[0],
        model.answer(contexts[1:, :1], torch.tensor([1]), 6)[0],
    ]
    assert together == apart
    assert all(len(answer) <= 6 and UNKNOWN not in answer for answer in together)


def test_it_learns(tmp_path: Path) -> None:
    spec = specification(epochs=25, patience=25, checkpoint_seconds=60.0)
    figures = registry.prepare(spec, dialogues(300), tmp_path, seed=1)
    assert figures["validation_perplexity"] < 1.3
    answers = registry.responder(spec, tmp_path, tmp_path, seed=1)(
        pa.table({"text": ["what is red number 1", "what is blue number 2"]})
    )
    assert answers["response"].to_pylist() == ["red it is", "blue it is"]


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamax"])
def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path: Path, optimiser: str) -> None:
    spec = specification(optimiser=optimiser, momentum=0.9)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    figures = registry.prepare(spec, dialogues(), whole, seed=4)

    for stop in (3, 4, 11, 17):

        def interrupt(done: int, total: int | None, note: str, stop: int = stop) -> None:
            if done == stop:
                raise Killed

        with pytest.raises(Killed):
            registry.prepare(spec, dialogues(), cut, seed=4, progress=interrupt)
        torch.rand(100)  # other random draws of the process do not matter
    assert registry.prepare(spec, dialogues(), cut, seed=4) == figures
    assert (cut / Trainer.WEIGHTS).read_bytes() == (whole / Trainer.WEIGHTS).read_bytes()
    assert not (cut / Trainer.CHECKPOINT).exists()


def test_training_stops_early_and_keeps_the_best(tmp_path: Path) -> None:
    spec = specification(learning_rate=3.0, epochs=12, patience=2)
    figures = registry.prepare(spec, dialogues(), tmp_path, seed=1)
    history = figures["validation_perplexities"]
    assert len(history) < 12
    assert history.index(min(history)) == len(history) - 3
    model = Seq2SeqResponder(spec, tmp_path).model
    encoded = EncodedDialogues.of_texts(
        *(
            dialogues().filter(pa.compute.equal(dialogues()["split"], "valid"))[column].to_pylist()
            for column in ("context", "response")
        ),
        Vocabulary.load(tmp_path / "vocabulary.txt"),
        8,
    )
    assert perplexity(model, encoded) == pytest.approx(min(history))


def test_bfloat16_learns_as_well_and_keeps_float32_weights(tmp_path: Path) -> None:
    perplexities = {}
    for precision in ("float32", "bfloat16"):
        (tmp_path / precision).mkdir()
        spec = specification(precision=precision, epochs=6)
        figures = registry.prepare(spec, dialogues(), tmp_path / precision, seed=3)
        perplexities[precision] = figures["validation_perplexities"]
        weights = Seq2SeqResponder(spec, tmp_path / precision).model.state_dict()
        assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    assert perplexities["float32"] != perplexities["bfloat16"]
    assert min(perplexities["bfloat16"]) == pytest.approx(min(perplexities["float32"]), rel=0.05)
    assert min(perplexities["bfloat16"]) < perplexities["bfloat16"][0] / 2


def test_a_loss_that_is_not_a_number_names_epoch_and_batch(tmp_path: Path) -> None:
    spec = specification(optimiser="sgd", learning_rate=1e38, clipping=1e38)
    with pytest.raises(
        FairnessError, match=r"training loss is (nan|inf) in epoch \d+, batch \d+; last good checkpoint: .*; lower"
    ):
        registry.prepare(spec, dialogues(), tmp_path, seed=1)


def test_nothing_to_train_on(tmp_path: Path) -> None:
    empty = dialogues().filter(pa.compute.equal(dialogues()["split"], "valid"))
    with pytest.raises(FairnessError, match="0 training and 20 validation dialogues"):
        registry.prepare(specification(), empty, tmp_path, seed=1)


def pairs(*contexts: tuple[str, str]) -> pa.Table:
    return pa.table(
        {
            "pair_id": pa.array(range(len(contexts)), pa.int64()),
            "context_a": [a for a, _ in contexts],
            "context_b": [b for _, b in contexts],
        }
    )


class Echo:
    """Answers with the context in capitals and records the contexts."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, contexts: pa.Table) -> pa.Table:
        self.asked += contexts["text"].to_pylist()
        return pa.table({"response": [text.upper() for text in contexts["text"].to_pylist()]})


def test_responding_asks_each_distinct_context_once_shortest_first(tmp_path: Path) -> None:
    echo = Echo()
    answers = respond(pairs(("long one", "b"), ("a", "b"), ("b", "long one")), echo, tmp_path)
    assert echo.asked == ["a", "b", "long one"]
    assert answers.replies["context"].to_pylist() == ["long one", "a", "b"]
    rows = [(row["pair_id"], row["side"], row["context"], row["response"]) for row in answers.table.to_pylist()]
    assert rows == [
        (0, "a", "long one", "LONG ONE"), (0, "b", "b", "B"), (1, "a", "a", "A"), (1, "b", "b", "B"),
        (2, "a", "b", "B"), (2, "b", "long one", "LONG ONE"),
    ]  # fmt: skip


def test_responding_resumes_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairness_pipeline.workspace.distinct.CHUNK", 2)
    context_pairs = pairs(*((f"a{i}", f"b{i}") for i in range(5)))

    class Interrupted(Echo):
        def __call__(self, contexts: pa.Table) -> pa.Table:
            if len(self.asked) >= 4:
                raise Killed
            return super().__call__(contexts)

    with pytest.raises(Killed):
        respond(context_pairs, Interrupted(), tmp_path)
    echo = Echo()
    answers = respond(context_pairs, echo, tmp_path)
    assert len(echo.asked) == 6
    assert answers.table.equals(respond(context_pairs, Echo(), tmp_path / "fresh").table)


def test_a_costly_responder_receives_all_contexts_before_the_first_call(tmp_path: Path) -> None:
    class Costly(Echo):
        def check_allowed(self, contexts: list[str]) -> None:
            raise FairnessError(f"{sorted(contexts)} after {self.asked}")

    with pytest.raises(FairnessError, match=r"\['a', 'b', 'c'\] after \[\]"):
        respond(pairs(("a", "b"), ("b", "c")), Costly(), tmp_path)


def test_an_empty_answer_has_its_own_kind_and_a_missing_one_is_refused(tmp_path: Path) -> None:
    table = respond(pairs(("a", "bb")), lambda t: pa.table({"response": [" ", "x"]}), tmp_path).table
    assert list(zip(table["response"].to_pylist(), table["kind"].to_pylist(), strict=True)) == [
        (" ", "empty"),
        ("x", "answer"),
    ]
    with pytest.raises(FairnessError, match="expected a row for each of 2 texts, found 0"):
        respond(pairs(("a", "bb")), lambda t: pa.table({"response": pa.array([], pa.string())}), tmp_path / "x")


def test_the_responder_is_picklable(tmp_path: Path) -> None:
    spec = specification(epochs=1)
    registry.prepare(spec, dialogues(), tmp_path, seed=1)
    responder = registry.responder(spec, tmp_path, tmp_path, seed=1)
    contexts = pa.table({"text": ["what is red", "zzz", ""]})
    expected = responder(contexts)
    assert pickle.loads(pickle.dumps(responder))(contexts).equals(expected)
    assert all(expected["response"].to_pylist())
