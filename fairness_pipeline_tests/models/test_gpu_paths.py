"""Code for GPUs, tested without one: memory that runs out, losses that are rarely read, turns. Some need a GPU."""

import select
import subprocess
import sys
import warnings
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from fairness_pipeline.debiasing.dialogue.debiased_chat import sample_responses
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.measures.dialogue.politeness import PolitenessScorer
from fairness_pipeline.models import devices
from fairness_pipeline.models.batching import Batch, EncodedDialogues
from fairness_pipeline.models.classifiers.specification import PublishedClassifier
from fairness_pipeline.models.devices import check_room_to_train, in_batches, moved, roomy, rows_beside, to_device
from fairness_pipeline.models.dialogue import seq2seq
from fairness_pipeline.models.dialogue.retrieval import Ranker, best_candidates
from fairness_pipeline.models.dialogue.seq2seq import Seq2Seq
from fairness_pipeline.models.dialogue.specification import Seq2SeqSizes
from fairness_pipeline.models.specification import TrainingSettings
from fairness_pipeline.models.text_classifier import TextClassifier
from fairness_pipeline.models.training import Penalty, Trainer
from fairness_pipeline.models.watching import Watch
from fairness_pipeline_tests.models.tiny_models import classifier

SIZES = Seq2SeqSizes(layers=1, hidden=12, embedding=6, vocabulary=60, dropout=0.0)
SETTINGS = TrainingSettings(optimiser="adam", learning_rate=0.01, clipping=1.0, batch_tokens=200, epochs=2, patience=2)


def dialogues(count: int = 60) -> EncodedDialogues:
    random = np.random.default_rng(1)
    turns = [random.integers(4, 40, random.integers(2, 9)) for _ in range(2 * count)]
    return EncodedDialogues(turns[::2], turns[1::2])


def test_batches_are_halved_until_they_fit() -> None:
    sizes: list[int] = []

    def work(start: int, end: int) -> list[int]:
        sizes.append(end - start)
        if end - start > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return list(range(start, end))

    model = torch.nn.Linear(1, 1)
    assert [row for part in in_batches(work, 20, 16, model) for row in part] == list(range(20))
    assert sizes[:4] == [16, 8, 4, 2] and max(sizes[4:]) == 2
    sizes.clear()
    assert [row for part in in_batches(work, 20, 16, model) for row in part] == list(range(20))
    assert max(sizes) == 2  # the model's next call starts with the size that fits
    sizes.clear()
    list(in_batches(work, 20, 16, torch.nn.Linear(1, 1)))
    assert max(sizes) == 16

    def never(start: int, end: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(FairnessError, match="one text does not fit into the GPU's memory; set device: cpu"):
        list(in_batches(never, 4, 4, model))


def test_rows_of_a_batch_fit_beside_keys_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    config = LlamaConfig(hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, vocab_size=32_000)
    with torch.device("meta"):
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    # Half a megabyte for each token; four fifths of 80 GB, without 13 GB of weights.
    assert rows_beside(model, 500, room=80 * 10**9) == pytest.approx((64e9 - 13e9) / (500 * 2**19), rel=0.03)
    assert rows_beside(model, 100_000, room=80 * 10**9) == 1
    grouped = LlamaConfig(**{**config.to_dict(), "num_key_value_heads": 8})
    with torch.device("meta"):
        narrower = LlamaForCausalLM(grouped).to(torch.bfloat16)
    assert rows_beside(narrower, 500, room=80 * 10**9) > 3.9 * rows_beside(model, 500, room=80 * 10**9)
    assert rows_beside(model, 500) is None  # not on a GPU
    with pytest.raises(FairnessError, match=r"training 6\.[0-9] billion weights takes 5[0-9] GB or more, and this"):
        monkeypatch.setattr(devices, "_memory_of", lambda device: 24 * 10**9)
        check_room_to_train(model)
    monkeypatch.setattr(devices, "_memory_of", lambda device: 80 * 10**9)
    check_room_to_train(model)


class Small(Seq2Seq):
    """Runs out of memory for more than `most` rows."""

    most = 1000

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        if self.training and len(batch.contexts) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().forward(batch)


def trained(folder: Path, most: int, penalty: str) -> tuple[list[float], dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    model = Small(SIZES, 40)
    model.most = most
    folder.mkdir()
    squared_weights = Penalty(lambda: model.embedding.weight.square().sum() * 1e-3, clipped_apart=penalty == "apart")
    added = squared_weights if penalty else None
    history = Trainer(model, SETTINGS, folder, 1, added).fit(dialogues(), dialogues(10))
    return history, dict(model.state_dict())


@pytest.mark.parametrize("penalty", ["", "together", "apart"])
def test_training_in_halves_is_the_same_training(tmp_path: Path, penalty: str) -> None:
    whole, weights = trained(tmp_path / "whole", 1000, penalty)
    halves, others = trained(tmp_path / "halves", 4, penalty)
    assert halves == pytest.approx(whole, rel=1e-4)
    for name, tensor in weights.items():
        assert torch.allclose(tensor, others[name], atol=1e-4), name
    with pytest.raises(FairnessError, match="set device: cpu"):
        trained(tmp_path / "none", 0, penalty)


def test_a_penalty_that_is_clipped_apart_leaves_the_loss_its_own_step(tmp_path: Path) -> None:
    """By hand: one step of SGD moves by the clipped gradients of the loss and of the penalty; clipped together, by one
    gradient of the same length."""
    steps = {}
    for name in ("none", "apart", "together"):
        torch.manual_seed(0)
        model = Small(SIZES, 40)
        before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
        settings = SETTINGS.model_copy(
            update={"optimiser": "sgd", "learning_rate": 1.0, "clipping": 0.1, "epochs": 1, "batch_tokens": 10**6}
        )
        strong = Penalty(lambda weights=model.embedding.weight: 100 * weights[5].sum(), 0.5, name == "apart")
        (tmp_path / name).mkdir()
        Trainer(model, settings, tmp_path / name, 1, None if name == "none" else strong).fit(dialogues(), None)
        steps[name] = {key: tensor - before[key] for key, tensor in model.state_dict().items()}
    length = {
        name: float(torch.cat([step.flatten() for step in by_parameter.values()]).norm())
        for name, by_parameter in steps.items()
    }
    assert length["together"] == pytest.approx(0.1, rel=1e-3) and length["none"] == pytest.approx(0.1, rel=1e-3)
    for key, step in steps["none"].items():
        expected = step.clone()
        if key == "embedding.weight":
            expected[5] -= 0.5 * 0.1 / step.shape[1] ** 0.5
        assert torch.allclose(steps["apart"][key], expected, atol=1e-6), key
    loss = sum(float(step.norm()) ** 2 for key, step in steps["together"].items() if key != "embedding.weight") ** 0.5
    assert loss < 0.01  # the remaining step of the loss


@pytest.mark.parametrize("name", [Trainer.WEIGHTS, Trainer.HISTORY])
def test_a_training_with_a_deleted_file_is_done_again(tmp_path: Path, name: str) -> None:
    history, weights = trained(tmp_path / "own", 1000, penalty="")
    (tmp_path / "own" / name).unlink()
    torch.manual_seed(0)
    model = Small(SIZES, 40)
    assert Trainer(model, SETTINGS, tmp_path / "own", 1).fit(dialogues(), dialogues(10)) == history
    assert all(torch.equal(tensor, weights[key]) for key, tensor in model.state_dict().items())


def test_a_batch_that_is_no_sum_of_its_parts_is_not_split(tmp_path: Path) -> None:
    class Whole(Small):
        SPLITS = Ranker.SPLITS

    model = Whole(SIZES, 40)
    model.most = 4
    with pytest.raises(FairnessError, match=r"cannot be halved.*lower training\.batch_tokens"):
        Trainer(model, SETTINGS, tmp_path, 1).fit(dialogues(), dialogues(10))


@pytest.mark.parametrize(("valid", "apart"), [(None, False), (dialogues(10), False), (None, True)])
def test_a_gradient_that_is_no_number_is_refused_before_the_update(
    tmp_path: Path, valid: EncodedDialogues | None, apart: bool
) -> None:
    torch.manual_seed(0)
    model = Small(SIZES, 40)
    settings = SETTINGS.model_copy(update={"checkpoint_seconds": 0.0})
    steps = 0

    def penalty() -> torch.Tensor:
        nonlocal steps
        steps += 1
        return model.embedding.weight.sum() * (torch.nan if steps == 3 else 0.0)

    with pytest.raises(FairnessError, match="gradient of the training loss is nan in epoch 1, batch 3; last good"):
        Trainer(model, settings, tmp_path, 1, Penalty(penalty, clipped_apart=apart)).fit(dialogues(), valid)
    assert all(weight.isfinite().all() for weight in model.state_dict().values())
    history = Trainer(Small(SIZES, 40), settings, tmp_path, 1).fit(dialogues(), valid)  # resumes from the checkpoint
    assert np.isfinite(history).all()


@pytest.mark.parametrize("count", [1, 2, 4097, 8192, 8193])
def test_equal_scores_give_the_first_candidate_however_many_there_are(count: int) -> None:
    torch.manual_seed(1)
    queries, candidates = torch.randn(64, 30), torch.randn(count, 30)
    candidates[-1] = candidates[0]
    best = best_candidates(queries, candidates)
    assert count == 1 or not (best == count - 1).any()
    expected = (queries @ candidates[: max(1, count - 1)].T).argmax(dim=1)
    assert torch.equal(best, expected)


def test_a_loss_that_is_no_number_is_found_when_it_is_read(tmp_path: Path) -> None:
    watch = Watch("training loss", tmp_path / "none", every=4)
    sums = [watch.add(torch.tensor(float(step)), f"step {step}", terms=2) for step in range(4)]
    assert sums == [[0.0, 0.0]] * 3 + [[6.0, 8.0]]
    watch.add(torch.tensor(torch.nan), "step 5")
    watch.add(torch.tensor(1.0), "step 6")
    with pytest.raises(FairnessError, match="training loss is nan in step 6, or up to 1 steps before; last good"):
        watch.collect("step 6")
    assert Watch("loss", None).collect("nowhere") == [0.0, 0.0]


@pytest.mark.parametrize("together", [2, 3, 8, 50])
def test_words_written_together_are_the_same(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    torch.manual_seed(1)
    model = Seq2Seq(SIZES, 12).eval()
    for parameter in model.parameters():
        parameter.data *= 2  # so that answers differ, and end at different lengths
    contexts = torch.randint(4, 12, (512, 5))
    lengths = torch.full((512,), 5)
    expected = model.answer(contexts, lengths, 9)
    monkeypatch.setattr(Seq2Seq, "together", property(lambda self: together))
    assert model.answer(contexts, lengths, 9) == expected
    assert len({len(answer) for answer in expected}) > 3
    assert seq2seq._TOGETHER > 1


def test_a_gpus_batches_grow_with_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = []
    for memory in (1, 3, 8, 24, 80, 1000):
        card = SimpleNamespace(total_memory=memory * 2**30 - 2**28)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device, card=card: card)
        factors.append(roomy(64, torch.device("cuda")) // 64)
    assert factors == [1, 1, 2, 8, 32, 32]
    assert roomy(64, torch.device("cpu")) == 64


def test_a_batch_size_from_a_file_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "roomy", lambda size, device: 4)
    model = TextClassifier(classifier(tmp_path), None, "cpu", "name")
    texts = ["what is red"] * 6
    assert [len(part) for part in model.probabilities(texts)] == [4, 2]
    assert [len(part) for part in model.probabilities(texts, 3)] == [3, 3]
    labels = {"name": str(tmp_path), "positive": ("positive",)}
    assert PublishedClassifier(**labels).at_once is None and PublishedClassifier(**labels, batch=64).at_once == 64


def test_devices() -> None:
    small, large = torch.nn.Linear(10, 10), torch.nn.Linear(1000, 1000)
    assert to_device(small, "auto").weight.device.type == "cpu"
    assert to_device(large, "auto").weight.device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert to_device(large, "cpu").weight.device.type == "cpu"
    assert moved(torch.ones(2), torch.device("cpu")).tolist() == [1.0, 1.0]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FairnessError, match="torch sees no GPU; set it to auto or cpu"):
        PolitenessScorer(classifier(tmp_path), label="positive", device="cuda")(pa.table({"text": ["a"]}))


WORKER = """
import sys, time
from fairness_pipeline.foundation.turns import take_gpu, turns_end, wait_for_turns

if sys.argv[1] == "waits":
    wait_for_turns()
with turns_end(lambda done, total, note: print(note, file=sys.stderr, flush=True)):
    take_gpu()
    take_gpu()
    print("has it", flush=True)
    sys.stdin.readline()
print("gave it back", flush=True)
sys.stdin.readline()
"""


def worker(kind: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, kind],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"TMPDIR": str(folder), "PATH": ""},
        cwd=Path(__file__).parents[2],
    )  # fmt: skip


def test_one_worker_at_a_time_has_the_gpu(tmp_path: Path) -> None:
    first, alone = worker("waits", tmp_path), worker("alone", tmp_path)
    assert first.stdout and first.stdin and alone.stdout
    assert first.stdout.readline() == "has it\n"
    assert alone.stdout.readline() == "has it\n"  # Ray has given it its own GPU
    second, third = worker("waits", tmp_path), worker("waits", tmp_path)
    for process in (second, third):
        assert process.stderr and "waiting for the GPU" in process.stderr.readline()
        assert process.poll() is None
    first.stdin.write("\n")
    first.stdin.flush()
    assert first.stdout.readline() == "gave it back\n"
    remaining = [second, third]
    lines = []
    for process in remaining:  # whichever holds the GPU gives it up when it is killed
        assert process.stdout
    while len(lines) < 2:
        ready, _, _ = select.select([process.stdout for process in remaining], [], [], 30)
        assert len(ready) == 1
        holder = next(process for process in remaining if process.stdout is ready[0])
        assert holder.stdout
        lines.append(holder.stdout.readline())
        holder.kill()
        holder.wait()
        remaining.remove(holder)
    assert lines == ["has it\n"] * 2
    for process in (first, alone):
        process.kill()
        process.wait()


on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def copies(wide: bool = False) -> tuple[Seq2Seq, Seq2Seq]:
    """The same network on a GPU and on a processor."""
    sizes = SIZES.model_copy(update={"hidden": 256, "vocabulary": 20_000}) if wide else SIZES
    torch.manual_seed(1)
    network = Seq2Seq(sizes, sizes.vocabulary if wide else 40).eval()
    return to_device(deepcopy(network), "cuda"), network


@on_a_gpu
def test_a_gpu_gives_what_a_processor_gives(tmp_path: Path) -> None:
    gpu, cpu = copies()
    contexts, lengths = torch.randint(4, 40, (700, 6)), torch.randint(1, 7, (700,))
    contexts[torch.arange(6) >= lengths[:, None]] = 0
    answers = zip(gpu.answer(contexts.cuda(), lengths, 9), cpu.answer(contexts, lengths, 9), strict=True)
    same = [gpu_answer == cpu_answer for gpu_answer, cpu_answer in answers]
    assert np.mean(same) > 0.99  # scores that differ only by rounding may change places

    batch = dialogues().batch(np.arange(60), torch.device("cpu"))
    for noise in (0.0, 1.0):
        on_gpu = sample_responses(
            gpu, Batch(batch.contexts.cuda(), batch.lengths, batch.responses.cuda()), 9, 1.0, noise
        )
        on_cpu = sample_responses(cpu, batch, 9, 1.0, noise)
        assert on_gpu.words.shape[1] == int(on_gpu.lengths.max()) and on_gpu.soft is not None
        if not noise:
            same = (on_gpu.words.cpu() == on_cpu.words).all(dim=1) & (on_gpu.lengths == on_cpu.lengths)
            assert same.double().mean() > 0.95

    queries, candidates = torch.randn(600, 30), torch.randn(300_000, 30)
    candidates[-1] = candidates[0]
    best = best_candidates(queries.cuda(), candidates.cuda()).cpu()
    scores = (queries * candidates[best]).sum(1)
    assert torch.allclose(scores, (queries * candidates[best_candidates(queries, candidates)]).sum(1), atol=1e-4)
    assert not (best == len(candidates) - 1).any()

    histories = []
    for network in copies():
        folder = tmp_path / next(network.parameters()).device.type
        folder.mkdir()
        histories.append(Trainer(network, SETTINGS, folder, 1).fit(dialogues(), dialogues(10)))
    assert histories[0] == pytest.approx(histories[1], rel=1e-3)


@on_a_gpu
def test_real_memory_that_runs_out(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"batch_tokens": 16_000, "epochs": 1})
    histories = []
    for name, share in (("whole", 1.0), ("halves", 0.7 * 2**30 / torch.cuda.get_device_properties(0).total_memory)):
        (tmp_path / name).mkdir()
        gpu, _ = copies(wide=True)
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(share)
        trainer = Trainer(gpu, settings, tmp_path / name, 1)
        try:
            histories.append(trainer.fit(dialogues(900), None))
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        assert (trainer._parts > 1) == (name == "halves")
    assert histories[1] == pytest.approx(histories[0], rel=1e-3)


@on_a_gpu
def test_training_does_not_wait_for_the_gpu_at_every_step(tmp_path: Path) -> None:
    gpu, _ = copies()
    trainer = Trainer(gpu, SETTINGS.model_copy(update={"epochs": 1}), tmp_path, 1)
    train = dialogues(600)
    steps = len(train.batches(SETTINGS.batch_tokens, 1))
    assert steps > 30
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # torch also warns that this mode is a prototype
        torch.cuda.set_sync_debug_mode("warn")
        try:
            trainer.fit(train, None)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    synchronizations = [warning for warning in caught if "synchronizing" in str(warning.message)]
    lines = {f"{warning.filename}:{warning.lineno}" for warning in synchronizations}
    # The loss is read once in twenty steps, and the weights at the end; warnings name their line.
    assert len(synchronizations) < steps / 2, (len(synchronizations), steps, lines)
