"""Language models beside plain code."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline_tests.benchmark import plain
from fairness_pipeline_tests.benchmark.shared import Ratio, rate


def generation() -> list[Ratio]:
    """A GPT-2 of 6 layers (384 wide, vocabulary 50,257, random weights), 20 tokens an answer."""
    import transformers

    from fairness_pipeline.models.dialogue import registry
    from fairness_pipeline_tests.models.tiny_models import tokenizer

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        configuration = transformers.GPT2Config(n_layer=6, n_embd=384, n_head=6, eos_token_id=50_256)
        model = transformers.GPT2LMHeadModel(configuration).eval()
        model.save_pretrained(folder)
        tokens = tokenizer()
        tokens.save_pretrained(folder)
        random = np.random.default_rng(0)
        words = ["what", "is", "red", "green", "blue", "it", "the", "man", "woman"]
        prompts = [" ".join(random.choice(words, max(2, n))) for n in random.poisson(11, 256)]
        specification = ModelSpecification(
            architecture="causal_lm", studies=("dialogue_fairness",), corpus="c", huggingface={"name": folder},
            decoding={"max_tokens": 20, "keep_empty": True},
        )  # fmt: skip
        registry.prepare(specification, pa.table({}), Path(folder), 1)
        responder = registry.responder(specification, Path(folder), Path(folder), 1)
        asked = pa.table({"text": sorted(prompts, key=len)})
        responder(asked.slice(0, 64))
        slow = rate(16, lambda: plain.generate(model, tokens, prompts[:16], 20), 2)
        fast = rate(len(prompts), lambda: responder(asked), 2)
    return [Ratio("Hugging Face generation", "responses", slow, fast, 5)]


def _openvino(model: Any, tokenizer: Any, texts: list[str]) -> float | None:
    """Tokens a second of OpenVINO's logits for full batches of the commonest length; None where it is not installed."""
    try:
        import openvino
    except ImportError:
        return None

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.model(
                input_ids=input_ids, attention_mask=attention_mask, use_cache=False
            ).logits
            return logits

    rows = [row for row in tokenizer(texts)["input_ids"] if len(row) == 20][:64]
    given = {"input_ids": torch.tensor(rows), "attention_mask": torch.ones(len(rows), 20, dtype=torch.int64)}
    made = openvino.convert_model(Logits(), example_input=given)
    how = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.compile_model(made, "CPU", how)
    asked = {name: tensor.numpy() for name, tensor in given.items()}
    compiled(asked)
    return rate(20 * len(rows), lambda: compiled(asked), 3)


def language_models() -> list[Ratio]:
    """Perplexities of stereotyped phrases under a model of DialoGPT-small's size, with random weights."""
    from transformers import GPT2Config, GPT2LMHeadModel, GPT2TokenizerFast

    from fairness_pipeline.corpora.language.phrase_corpus import PhraseCorpus
    from fairness_pipeline.foundation.paths import data_file
    from fairness_pipeline.foundation.records import read_records
    from fairness_pipeline.foundation.yaml_files import load
    from fairness_pipeline.models.language.perplexity import PerplexityScorer

    folder = os.environ.get("FAIRNESS_CORPORA")
    if not folder:
        return []
    corpus = load(PhraseCorpus, data_file("corpora/redditbias.yaml"))
    files = [source.counterfactuals[1] for source in corpus.phrases.values()]
    rows = [row for file in files for _, row in read_records(file.resolve(Path()), file.encoding)]
    texts = list(dict.fromkeys(row[name].strip() for row in rows for name in ("comments", "comments_processed")))
    tokenizer: Any = GPT2TokenizerFast.from_pretrained(f"{folder}/lm_reference/gpt2_117M")
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config()).eval()
    tokens = sum(map(len, tokenizer(texts)["input_ids"]))
    few = texts[:: max(1, len(texts) // 200)]
    found: list[Ratio] = []
    few_tokens = sum(map(len, tokenizer(few)["input_ids"]))
    width, layers = 768, 12
    for threads, asked in ((1, 2.4), (2, 4.2)):
        torch.set_num_threads(1)
        slow = rate(few_tokens, lambda: plain.perplexities(model, tokenizer, few))
        torch.set_num_threads(threads)
        square = torch.randn(1024, 1024)
        limit = rate(20 * 2 * 1024**3, lambda square=square: [square @ square for _ in range(20)], 3)
        scored: dict[str, pa.Table] = {}

        def ours(scored: dict[str, pa.Table] = scored) -> None:
            scored["all"] = PerplexityScorer(model, tokenizer)(pa.table({"text": texts}))

        fast = rate(tokens, ours)
        exact = plain.perplexities(model, tokenizer, texts[:20])
        worst = max(abs(a / b - 1) for a, b in zip(scored["all"]["perplexity"].to_pylist()[:20], exact, strict=True))
        work = 2 * (12 * layers * width**2 + width * model.config.vocab_size)  # a token's multiplications and additions
        note = f"{fast * work / limit:.0%} of the limit of matrix products; largest relative difference {worst:.0e}"
        task = f"perplexity of phrases, GPT-2 of 12 layers, {number_of(threads, 'thread')}"
        found.append(Ratio(task, "tokens", slow, fast, asked, note))
        if threads == 1 and (peer := _openvino(model, tokenizer, texts)):
            found.append(Ratio(f"{task}, beside OpenVINO", "tokens", peer, fast, 0.9, "float32, texts of one length"))
    torch.set_num_threads(1)
    return found
