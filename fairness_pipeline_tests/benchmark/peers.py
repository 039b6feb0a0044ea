"""The pipeline beside the libraries that others take for the same task: lm-evaluation-harness, LangFair, fairlearn.

The first two are no dependencies, as they bring many packages. They are measured in a separate environment:

    python -m venv peers
    peers/bin/pip install -e '.[dev]' lm-eval langfair
    peers/bin/python -m fairness_pipeline_tests.benchmark peers

A library that is not installed is named, and its rows are skipped. Of LangFair's counterfactual metrics only the sentiment
by VADER is compared. Cosine similarity and RoBERTa's sentiment download a model from the Hugging Face hub, BLEU and the
neutral wording download NLTK's `punkt_tab`, and in place of ROUGE-L answers are compared by chrF here.
"""

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import scipy.stats
import torch

import fairness_pipeline as fp
from fairness_pipeline.measures.dialogue.sentiment import SentimentScorer
from fairness_pipeline.measures.dialogue.text import collapsed
from fairness_pipeline.models.language.perplexity import PerplexityScorer
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline_tests.benchmark import shared
from fairness_pipeline_tests.benchmark.shared import Ratio, rate, score_all
from fairness_pipeline_tests.models.tiny_models import WORDS, tokenizer


def peers() -> Iterator[Ratio]:
    """The rows of every library that is installed; the others are named on the terminal."""
    for name, rows in {"lm-eval": harness, "langfair": langfair, "fairlearn": fairlearn}.items():
        if find_spec(name.replace("-", "_")):
            yield from rows()
        else:
            print(f"{name} is not installed, so its rows are skipped: pip install {name}", flush=True)


def _timed(count: int, work: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Items a second, the best of `repeats`, and the last result."""
    results: list[Any] = []
    return rate(count, lambda: results.append(work()), repeats), results[-1]


def harness() -> Iterator[Ratio]:
    """Log-likelihoods of 100 texts under a GPT-2 of 12 layers (DialoGPT-small's size) with random weights."""
    from transformers import GPT2Config, GPT2LMHeadModel

    models, instance = import_module("lm_eval.models.huggingface"), import_module("lm_eval.api.instance").Instance
    tokens, random = tokenizer(), np.random.default_rng(0)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config()).eval()
    lengths = [len(text.split()) for text in shared.dialogues()[0]["response"].to_pylist()]
    texts = [" ".join(random.choice(WORDS[3:], 5 + length)) for length in random.choice(lengths, 100)]
    # The harness predicts the first token from the mark of the end; `before` does the same here.
    scorer = PerplexityScorer(model, tokens, before=tokens.eos_token)
    requests = [instance("loglikelihood_rolling", {}, (text,), number) for number, text in enumerate(texts)]
    count = sum(len(row) for row in tokens(texts)["input_ids"])

    def theirs(size: int) -> Any:
        with redirect_stderr(io.StringIO()):  # a progress bar for each batch
            library = models.HFLM(model, tokenizer=tokens, batch_size=size, device="cpu")
            return library.loglikelihood_rolling(requests, disable_tqdm=True)

    fast, here = _timed(count, lambda: scorer.totals(texts).loss, 2)
    for size in (1, 16):
        slow, there = _timed(count, lambda size=size: theirs(size), 2)
        note = f"largest relative difference {np.max(np.abs(np.divide(there, here) + 1)):.0e}"
        task = f"log-likelihood, GPT-2 of 12 layers, 1 thread, beside lm-eval, batches of {size}"
        yield Ratio(task, "tokens", slow, fast, 1.2, note)


def langfair() -> Iterator[Ratio]:
    """Sentiment of the two answers to a pair of contexts: 300 short pairs, ten times over, and 1,000 long ones."""
    short, long = shared.responses(6_000, 6_000), shared.long_responses(2_000)
    yield from _sentiment("300 pairs of 10 words", [short.slice(start, 600) for start in range(0, 6_000, 600)], 5, 1)
    yield from _sentiment(f"1,000 pairs of {shared.LONG} words", [long], 5, 1.5)
    alone = partial(subprocess.run, check=True, cwd=shared.ROOT)
    here, there = (rate(1, partial(alone, [sys.executable, "-c", code]), 3) for code in (_HERE, _THERE))
    note = f"with all imports: {1 / here:.1f} s for all measures, LangFair {1 / there:.1f} s for the sentiment"
    yield Ratio("300 short pairs in a new process, beside LangFair", "runs", there, here, 1.5, note)


def _sentiment(name: str, tables: list[pa.Table], asked: float, asked_of_all: float) -> Iterator[Ratio]:
    """Two rows: VADER's scores on both sides, and all measures beside LangFair's sentiment. Imports are not timed."""
    metric = import_module("langfair.metrics.counterfactual.metrics").SentimentBias(classifier="vader", how="pairwise")
    count, gender = sum(map(len, tables)), load_dimension("gender")
    sides = [[table.filter(pc.equal(table["side"], side))["response"].to_pylist() for side in "ab"] for table in tables]
    texts = [pa.table({"text": table["response"]}) for table in tables]
    score_all(tables[0].slice(0, 2), gender)  # loads what is loaded at first use
    slow, gaps = _timed(count, lambda: [metric.evaluate(*pair, show_progress_bars=False) for pair in sides])
    fast, scores = _timed(count, lambda: [SentimentScorer()(table) for table in texts])
    everything = rate(count, lambda: [score_all(table, gender) for table in tables])
    compound, few = scores[0]["compound"].to_numpy(), collapsed(texts[0]["text"].slice(0, 400)).to_pylist()
    theirs = [metric.classifier_instance.polarity_scores(text)["compound"] for text in few]
    rank = scipy.stats.spearmanr(np.abs(compound[::2] - compound[1::2]), gaps[0]).statistic
    note = (
        f"largest difference of a compound score {np.max(np.abs(compound[:400] - theirs)):.0e}; LangFair compares the "
        f"share of negative words, rank correlation of the pairs' gaps {rank:.2f}"
    )
    yield Ratio(f"sentiment of {name}, beside LangFair", "responses", slow, fast, asked, note)
    task, note = f"all measures of {name}, beside LangFair", "here also with words masked; LangFair the sentiment only"
    yield Ratio(task, "responses", slow, everything, asked_of_all, note)


_ANSWERS = "answers = [[f'{word} wonderful answer {n}' for n in range(300)] for word in ('his', 'her')]"
_HERE = f"import fairness_pipeline as fp; {_ANSWERS}; fp.score(answers[0] + answers[1])"
_THERE = f"""from langfair.metrics.counterfactual.metrics import SentimentBias; {_ANSWERS}
SentimentBias(classifier="vader", how="pairwise").evaluate(*answers, show_progress_bars=False)"""


def fairlearn() -> Iterator[Ratio]:
    """Rates of 24 groups with intervals: `MetricFrame` with 100 bootstrap samples, and `fp.audit`."""
    from fairlearn import metrics

    groups, count = 24, 300_000
    group = np.tile(np.arange(groups), count // groups)
    happens = (np.random.default_rng(0).random(count) < 0.2 + 0.01 * group).astype(int)
    rows = pd.DataFrame({"item": np.arange(count) // groups, "who": [f"group {g:02}" for g in group], "y": happens})
    ours = partial(fp.audit, item="item", group="who", outcome="y")

    def theirs(rows: pd.DataFrame) -> Any:
        return metrics.MetricFrame(
            metrics={"y": metrics.selection_rate}, y_true=rows["y"], y_pred=rows["y"], sensitive_features=rows["who"],
            n_boot=100, ci_quantiles=[0.025, 0.975], random_state=0,
        )  # fmt: skip

    (fast, here), (slow, there) = _timed(1, partial(ours, rows), 3), _timed(1, partial(theirs, rows))
    pairs = here[here["contrast"] == "pair"]
    rates = pd.concat([pairs.set_index(by)[of] for by, of in (("group", "value_a"), ("against", "value_b"))]) / 100
    worst, two = (rates - there.by_group["y"].reindex(rates.index)).abs().max(), rows[np.isin(group, (0, 23))]
    low, high = sorted(abs(ours(two).loc[0, ["ci_low", "ci_high"]]))
    bootstrap = " to ".join(f"{100 * end['y']:.1f}" for end in theirs(two).difference_ci())
    note = (
        f"{count:,} rows: {1 / fast:.2f} s, MetricFrame {1 / slow:.0f} s for 100 bootstrap samples; largest difference of a "
        f"rate {worst:.0e}; two groups alone differ by {low:.1f} to {high:.1f} points, by {bootstrap} with fairlearn"
    )
    yield Ratio("rates of 24 groups with intervals, beside fairlearn", "tables", slow, fast, 20, note)
