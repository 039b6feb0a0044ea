"""The models of all studies on a GPU, at the papers' sizes: rates, and shares of what the card can do at most.

`python -m fairness_pipeline_tests.benchmark gpu` needs a GPU, and no corpus: texts are random words. It writes its section
of docs/performance.md, which other runs leave as it is.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch

from fairness_pipeline.debiasing.dialogue.continued_training import GenderedBatch
from fairness_pipeline.debiasing.dialogue.debiased_chat import AdversarialTraining
from fairness_pipeline.debiasing.dialogue.disentanglement import (
    Bags,
    Discriminators,
    DisentanglementModel,
    optimisers_of,
    training_step,
)
from fairness_pipeline.debiasing.dialogue.settings import Adversarial, Disentanglement
from fairness_pipeline.models.batching import EncodedDialogues, pad
from fairness_pipeline.models.devices import roomy, to_device
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.dialogue.retrieval import best_candidates
from fairness_pipeline.models.dialogue.seq2seq import Seq2Seq, answers
from fairness_pipeline.models.dialogue.specification import ModelSpecification, Seq2SeqSizes
from fairness_pipeline.models.language.perplexity import PerplexityScorer
from fairness_pipeline.models.specification import TrainingSettings
from fairness_pipeline.models.text_classifier import TextClassifier
from fairness_pipeline.models.training import Trainer
from fairness_pipeline.models.vocabulary import Vocabulary
from fairness_pipeline_tests.models.tiny_models import WORDS, tokenizer

GPU, CPU = torch.device("cuda"), torch.device("cpu")
_WORDS = 30_000


class Row(NamedTuple):
    """A task's rate on the GPU and on the processors; the work of an item in 10^12 operations, and which limit holds."""

    task: str
    unit: str
    gpu: float
    cpu: float
    work: float = 0.0
    limit: str = ""


def gpu() -> dict[str, Any]:
    """The card, its limits in 10^12 operations a second, and the rows; nothing where there is no GPU."""
    if not torch.cuda.is_available():
        return {}
    torch.set_num_threads(os.cpu_count() or 1)
    limits = {kind: _rate(2 * 8192**3 / 1e12, _product(8192, getattr(torch, kind))) for kind in ("float32", "bfloat16")}
    rows: list[Row] = []
    for part in (_training, _answers, _retrieval, _perplexity, _generation, _classifier, _autoencoder, _debiased_chat):
        started = time.monotonic()
        found = part()
        torch.cuda.empty_cache()
        for row in found:
            print(f"{row.task}: {row.cpu:,.4g} -> {row.gpu:,.6g} {row.unit}/s", flush=True)
        print(f"{part.__name__[1:]}: {time.monotonic() - started:.0f} s", flush=True)
        rows += found
    card = torch.cuda.get_device_properties(GPU)
    return {
        "card": f"{card.name}, {card.total_memory / 2**30:.0f} GiB",
        "processors": os.cpu_count(),
        "torch": torch.__version__,
        "limits": limits,
        "rows": [row._asdict() for row in rows],
    }


def _product(size: int, kind: torch.dtype) -> Callable[[], object]:
    a, b = torch.randn(2, size, size, device=GPU, dtype=kind)
    return lambda: a @ b


def _rate(items: float, work: Callable[[], object], repeats: int = 3) -> float:
    """Items a second on the GPU, the best of several, after one that warms up."""
    best = float("inf")
    for number in range(repeats + 1):
        torch.cuda.synchronize()
        started = time.perf_counter()
        work()
        torch.cuda.synchronize()
        if number:
            best = min(best, time.perf_counter() - started)
    return items / best


def _turns(count: int, mean: float = 12) -> list[np.ndarray]:
    """Turns of up to 30 random words."""
    random = np.random.default_rng(0)
    return [random.integers(4, _WORDS, max(2, min(30, n))) for n in random.poisson(mean, count)]


def _both(kind: Any, *arguments: Any) -> dict[torch.device, Any]:
    """The same network with random weights on the GPU and on the processor."""
    made = {}
    for device in (GPU, CPU):
        torch.manual_seed(0)
        made[device] = to_device(kind(*arguments), device.type)
    return made


SEQ2SEQ = Seq2SeqSizes(layers=3, hidden=1024, embedding=300, vocabulary=_WORDS, dropout=0.1)
"""Of data/models/seq2seq.yaml, which are the paper's."""
_LSTM = sum(4 * 1024 * (inner + 1024) for inner in (300, 1024, 1024))
"""Multiplications for a word in an encoder or decoder of that size."""
_TURN = 12


def _training() -> list[Row]:
    """The paper's LSTM, in batches of 2,048 padded words."""
    settings = TrainingSettings(
        optimiser="sgd", learning_rate=0.1, momentum=0.9, clipping=0.1, batch_tokens=2048, epochs=1, patience=1
    )
    turns = _turns(32_000)

    def words_a_second(device: torch.device, precision: str, dialogues: int, warm: int) -> float:
        """Without the first steps, and what is written at the end."""
        encoded = EncodedDialogues(turns[:dialogues], turns[-dialogues:])
        at: dict[int, float] = {}

        def note(done: int, of: int, _: str) -> None:
            if done in (warm, of):
                torch.cuda.synchronize()
                at[done] = time.perf_counter()

        with tempfile.TemporaryDirectory() as folder:
            torch.manual_seed(0)
            how = settings.model_copy(update={"precision": precision})
            Trainer(to_device(Seq2Seq(SEQ2SEQ, _WORDS), device.type), how, Path(folder), 0).fit(encoded, None, note)
        last = max(at)
        return int(encoded.lengths.sum()) * (last - warm) / last / (at[last] - at[warm])

    work = 6 * (_LSTM + 0.5 * 1024 * _WORDS) / 1e12  # forward and twice backward; a response's words are half of all
    slow = words_a_second(CPU, "float32", 320, 1)
    return [
        Row(
            f"training, LSTM of 3 x 1,024, {precision}",
            "words",
            words_a_second(GPU, precision, 16_000, 20),
            slow,
            work,
            precision,
        )
        for precision in ("float32", "bfloat16")
    ]


def _seconds(work: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def _answers() -> list[Row]:
    """Greedy answers of that LSTM, ten words each."""
    networks = _both(Seq2Seq, SEQ2SEQ, _WORDS)
    vocabulary = Vocabulary(f"w{i}" for i in range(_WORDS - 4))
    texts = [" ".join(f"w{word}" for word in turn) for turn in _turns(16_384)]

    def answer(device: torch.device, count: int) -> None:
        with torch.inference_mode():
            answers(networks[device].eval(), vocabulary, texts[:count], 10, roomy(512, device))

    work = 2 * (_LSTM * (_TURN + 10) + 10 * 1024 * _WORDS) / 1e12
    return [
        Row("greedy answers of that LSTM, 10 words", "responses", _rate(16_384, lambda: answer(GPU, 16_384)),
            512 / _seconds(lambda: answer(CPU, 512)), work, "float32")
    ]  # fmt: skip


def _retrieval() -> list[Row]:
    """The best of 500,000 candidates, 300 wide."""
    queries, candidates = torch.randn(20_480, 300, device=GPU), torch.randn(500_000, 300, device=GPU)
    fast = _rate(len(queries), lambda: best_candidates(queries, candidates))
    here = queries[:512].cpu(), candidates.cpu()
    slow = 512 / _seconds(lambda: best_candidates(*here))
    return [Row("retrieval, best of 500,000", "contexts", fast, slow, 2 * 500_000 * 300 / 1e12, "float32")]


def _language_model(folder: str) -> dict[torch.device, Any]:
    """GPT-2 of 12 layers with random weights, and a tokenizer of few words in a folder."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    configuration = transformers.GPT2Config(eos_token_id=2, bos_token_id=2, pad_token_id=1)
    models = _both(transformers.GPT2LMHeadModel, configuration)
    models[CPU].save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return {device: model.eval() for device, model in models.items()}


_GPT2 = 12 * 12 * 768**2
"""Multiplications for a token, without the output."""


def _texts(count: int, words: int = 20) -> list[str]:
    random = np.random.default_rng(0)
    return [" ".join(random.choice(WORDS[3:], words)) for _ in range(count)]


def _perplexity() -> list[Row]:
    """Perplexities of texts of 20 tokens under GPT-2 of 12 layers."""
    with tempfile.TemporaryDirectory() as folder:
        models = _language_model(folder)
    texts = pa.table({"text": _texts(40_000)})
    scorers = {device: PerplexityScorer(model, tokenizer()) for device, model in models.items()}
    found = {device: scorer(texts.slice(0, 256))["perplexity"].to_numpy() for device, scorer in scorers.items()}
    worst = np.abs(found[GPU] / found[CPU] - 1).max()
    tokens = 20 * texts.num_rows
    return [
        Row(f"perplexity, GPT-2 of 12 layers (off by {worst:.0e} at most)", "tokens",
            _rate(tokens, lambda: scorers[GPU](texts), 1), 20 * 512 / _seconds(lambda: scorers[CPU](texts.slice(0, 512))),
            2 * (_GPT2 + 768 * 50_257) / 1e12, "float32")
    ]  # fmt: skip


def _generation() -> list[Row]:
    """Twenty tokens of that model after twelve, by `transformers`."""
    with tempfile.TemporaryDirectory() as folder:
        _language_model(folder)
        contexts = pa.table({"text": _texts(2048, 12)})

        def responder(device: str) -> Any:
            specification = ModelSpecification(
                architecture="causal_lm", studies=("dialogue_fairness",), corpus="c", huggingface={"name": folder},
                decoding={"max_tokens": 20, "keep_empty": True}, device=device,
            )  # fmt: skip
            registry.prepare(specification, pa.table({}), Path(folder), 1)
            return registry.responder(specification, Path(folder), Path(folder), 1)

        fast, slow = responder("cuda"), responder("cpu")
        rate = _rate(contexts.num_rows, lambda: fast(contexts), 1)
        slow(contexts.slice(0, 16))
        work = 2 * (_GPT2 * (_TURN + 20) + 20 * 768 * 50_257) / 1e12
        cpu = 64 / _seconds(lambda: slow(contexts.slice(0, 64)))
    return [Row("answers of that model, 20 tokens", "responses", rate, cpu, work, "float32")]


def _classifier() -> list[Row]:
    """A classifier of offence or sentiment as wide as BERT-base, texts of 20 tokens."""
    import transformers

    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        configuration = transformers.BertConfig(vocab_size=30_522, pad_token_id=1)
        transformers.BertForSequenceClassification(configuration).save_pretrained(folder)
        tokenizer().save_pretrained(folder)
        texts = _texts(20_000)
        fast, slow = (TextClassifier(folder, None, device, "name") for device in ("cuda", "cpu"))
        work = 2 * 12 * 12 * 768**2 * 20 / 1e12
        rate = _rate(len(texts), lambda: list(fast.probabilities(texts, 64)), 1)
        cpu = 256 / _seconds(lambda: list(slow.probabilities(texts[:256], 64)))
    return [Row("classifier as wide as BERT-base", "texts", rate, cpu, work, "float32")]


def _autoencoder() -> list[Row]:
    """A step of Debiased-Chat's autoencoder at the thesis's widths: 32 utterances, 30,000 words."""
    settings, turns = Disentanglement(), _turns(32)

    def steps(device: torch.device, count: int) -> Callable[[], None]:
        torch.manual_seed(0)
        model, discriminators = (
            to_device(kind(settings, _WORDS), device.type) for kind in (DisentanglementModel, Discriminators)
        )
        optimisers = optimisers_of(model, discriminators, settings)

        def take() -> None:
            for _ in range(count):
                utterances, groups = pad(turns, device), torch.arange(32).to(device) % 2
                bags = Bags.of([turn[:4] for turn in turns], device)
                training_step(model, discriminators, settings, utterances, groups, bags, **optimisers)

        return take

    slow = steps(CPU, 3)
    slow()
    rate = _rate(100, steps(GPU, 100), 2)
    return [Row("step of the autoencoder, GRU of 1,000", "steps", rate, 3 / _seconds(slow))]


def _debiased_chat() -> list[Row]:
    """A step of Debiased-Chat's generator: 32 dialogues, that LSTM, that autoencoder."""
    turns, autoencoder = _turns(64), Disentanglement()

    def steps(device: torch.device, count: int) -> Callable[[], None]:
        torch.manual_seed(0)
        model = to_device(Seq2Seq(SEQ2SEQ, _WORDS), device.type)
        det = DisentanglementModel(autoencoder, _WORDS).requires_grad_(False)
        course = AdversarialTraining(Adversarial(), model, det, 30)
        encoded = EncodedDialogues(turns[:32], turns[32:])
        groups = (torch.arange(32) % 2).to(device)

        def take() -> None:
            for _ in range(count):
                course.generator_step(GenderedBatch(encoded.batch(np.arange(32), device), groups), 1.0)

        return take

    slow = steps(CPU, 1)
    slow()
    rate = _rate(30, steps(GPU, 30), 2)
    return [Row("step of Debiased-Chat's generator", "steps", rate, 1 / _seconds(slow))]
