"""Times the pipeline against plain code, one after the other in one process, and writes docs/performance.md."""

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import yaml

from fairness_pipeline.corpora.dialogue.dialogues import read_dialogues
from fairness_pipeline.corpora.dialogue.grammar import Grammar
from fairness_pipeline.corpora.sentiment.equity_sentences import DIMENSIONS, TEMPLATE_SETS, make_equity_sentences
from fairness_pipeline.debiasing.dialogue.disentanglement import (
    Bags,
    Discriminators,
    DisentanglementModel,
    optimisers_of,
    training_step,
)
from fairness_pipeline.debiasing.dialogue.settings import Disentanglement
from fairness_pipeline.lexicons.contexts import find_contexts, make_pairs
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.lexicons.text import tokenize
from fairness_pipeline.measures.dialogue import registry
from fairness_pipeline.measures.dialogue.breakdown import break_down, swapped_words
from fairness_pipeline.measures.dialogue.dialogue_significance import compared
from fairness_pipeline.measures.dialogue.diversity import index_responses
from fairness_pipeline.measures.dialogue.instrument import check_instruments, swapped_texts
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.dialogue.variations import judged_again, other_scores, subsets
from fairness_pipeline.measures.sentiment.equity_pairs import Design
from fairness_pipeline.measures.sentiment.equity_significance import judge_equity
from fairness_pipeline.models.batching import EncodedDialogues, pad
from fairness_pipeline.models.classifiers.network import fit
from fairness_pipeline.models.classifiers.registry import new_network, new_tokens
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification, Fitting, NetworkSettings
from fairness_pipeline.models.classifiers.texts import LabelledTexts
from fairness_pipeline.models.classifiers.words import WordTokens
from fairness_pipeline.models.dialogue.responding import RESPONSES, respond
from fairness_pipeline.models.dialogue.retrieval import best_candidates
from fairness_pipeline.models.dialogue.seq2seq import Seq2Seq
from fairness_pipeline.models.dialogue.specification import ModelSpecification, Seq2SeqSizes
from fairness_pipeline.models.specification import TrainingSettings
from fairness_pipeline.models.training import Trainer
from fairness_pipeline.models.vocabulary import END, UNKNOWN, Vocabulary
from fairness_pipeline.project.project import Project, load_dimension
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.workspace.lake import Card, Lake
from fairness_pipeline_tests.benchmark import plain

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "performance.md"
PAIRS = 300_000
SYSTEMS = 1000
_FEW_SYSTEMS = 20


class Ratio(NamedTuple):
    """One comparison: items a second plainly and here, and the ratio the project asks for."""

    task: str
    unit: str
    plain: float
    here: float
    asked: float
    note: str = ""


def rate(items: int, work: Callable[[], object], repeats: int = 1) -> float:
    """Items a second; the best of `repeats`."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return items / best


def dialogues() -> tuple[pa.Table, str]:
    """The dialogues that texts are taken from: real tweets where they are available, else the generated sample."""
    real = bool(os.environ.get("FAIRNESS_CORPORA"))
    key = "twitter_real" if real else "twitter_sample"
    part = Project("real" if real else "sample").parts["dialogue_fairness"]
    table = read_dialogues(key, *part.corpora[key], part.settings.splits.model_dump(), 1).table
    everything = table.set_column(table.column_names.index("split"), "split", pa.repeat("audit", table.num_rows))
    return everything, f"{table.num_rows:,} {'real tweets' if real else 'generated tweets'}"


def pairs() -> list[Ratio]:
    """Pair construction, for a list of words and a list with phrases."""
    table, what = dialogues()
    lines = table["context"].to_pylist()
    ratios = []
    for name, reference, few, asked in (
        ("gender", plain.word_pairs, len(lines), 5),
        ("dialect", plain.phrase_pairs, 1000, 100),
    ):
        dimension = load_dimension(name)
        listed = dimension.all_pairs("published")

        def build(dimension=dimension) -> None:
            found = find_contexts(table, Swapper(dimension))
            make_pairs(found.table, dimension, maximum=PAIRS, seed=1)

        ratios.append(
            Ratio(
                f"pair construction, {name}",
                "lines",
                rate(few, lambda reference=reference, few=few, listed=listed: reference(lines[:few], listed), 3),
                rate(len(lines), build, 8),
                asked,
                what,
            )
        )
    return ratios


def score_all(responses: pa.Table, dimension: Dimension) -> dict[str, pa.Table]:
    """What the four measures find in a table of responses."""
    return {m.table: m.measure(responses, MeasureSettings(), dimension) for m in registry.measures()}


def responses(distinct: int, count: int = 2 * PAIRS) -> pa.Table:
    """`count` responses of which `distinct` differ: real ones, ten words long, told apart by a number."""
    table, _ = dialogues()
    texts = [" ".join(text.split()[:10]) for text in table["response"].to_pylist()]
    made = [f"{texts[i % len(texts)]} {i}" for i in range(distinct)]
    chosen = np.random.default_rng(1).integers(0, distinct, count) if distinct < count else np.arange(count)
    half = count // 2
    return pa.table(
        {
            "pair_id": pa.array(np.repeat(np.arange(half), 2)),
            "side": pa.array(["a", "b"] * half),
            "response": pa.array(made).take(pa.array(chosen)),
        }
    )


def measures() -> list[Ratio]:
    """The four measures at the paper's 300,000 pairs."""
    gender = load_dimension("gender")
    few = responses(1000, 1000)["response"].to_pylist()
    reference = plain.Measures(gender.attribute_words)
    reference(few[:10])
    score_all(responses(100, 100), gender)
    slow = rate(len(few), lambda: reference(few), 2)
    ratios = []
    # Asked below what a quiet machine gives (55 to 61, the same code twice): what fails is then the code.
    for distinct, asked in ((2 * PAIRS, 50), (round(0.09 * 2 * PAIRS), 600)):
        table = responses(distinct)
        share = f"{distinct / (2 * PAIRS):.0%} distinct"
        fast = rate(table.num_rows, lambda table=table: score_all(table, gender), 2)
        ratios.append(Ratio(f"four measures, 2 x 300,000 responses, {share}", "responses", slow, fast, asked))
    return ratios


def worth() -> list[Ratio]:
    """What stands beside a verdict, in the time that the measures and their comparison take, at 300,000 pairs."""
    gender, settings, judged = load_dimension("gender"), MeasureSettings(), SignificanceSettings()
    table = responses(2 * PAIRS)
    names = [f"m{i}" for i in range(150)]
    drawn = np.random.default_rng(2).integers(0, len(names), PAIRS)
    pairs = pa.table(
        {
            "pair_id": range(PAIRS),
            "source_side": np.where(drawn % 2, "a", "b"),
            "terms": [[{"a": names[i], "b": f"f{i}"}] for i in drawn.tolist()],
        }
    )
    human = dialogues()[0]["response"]
    started = time.perf_counter()
    tables = score_all(table, gender)
    compared(table, tables, settings=judged, seed=1, published={}, dimension=gender)
    measured = time.perf_counter() - started

    started = time.perf_counter()
    single = [measure for measure in registry.measures() if measure.scorer]
    (together,) = (measure for measure in registry.measures() if not measure.scorer)
    words, values = swapped_words(pairs), [(m, m.values(tables[m.table])) for m in single]
    break_down(pairs, words, values, {})
    grid = [*subsets(words, PAIRS, 1), *other_scores(single, tables, table, settings)]
    judged_again(values, (together, index_responses(table)), grid, judged)
    varied = time.perf_counter() - started

    started = time.perf_counter()
    swapped = swapped_texts(human, gender, 1)
    check_instruments(swapped, single, gender, settings=settings, significance=judged, texts="responses")
    checked = time.perf_counter() - started
    note = (
        f"measures and comparison {measured:.0f} s; breakdown and variations {varied:.1f} s, instruments "
        f"{checked:.1f} s ({swapped.num_rows // 2:,} texts; once a corpus and dimension, for all its models)"
    )
    return [Ratio("what a verdict is worth", "runs", 1 / measured, 1 / (varied + checked), 5, note)]


def retrieval() -> list[Ratio]:
    """The best of 500,000 candidates."""
    torch.manual_seed(0)
    candidates, queries = torch.randn(500_000, 300), torch.randn(2048, 300)
    few = 20
    found = best_candidates(queries, candidates)
    sorted_out = [plain.best_candidate(query, candidates) for query in queries[:few]]
    for query, ours, theirs in zip(queries, found.tolist(), sorted_out, strict=False):
        if ours != theirs:
            assert abs(float(candidates[ours] @ query) - float(candidates[theirs] @ query)) < 1e-5
    slow = rate(few, lambda: [plain.best_candidate(query, candidates) for query in queries[:few]], 2)
    fast = rate(len(queries), lambda: best_candidates(queries, candidates), 2)
    return [Ratio("retrieval, best of 500,000", "contexts", slow, fast, 15, "the same answers but for ties")]


def decoding() -> list[Ratio]:
    """Greedy decoding of the LSTM (1 x 256, vocabulary 8,000), with answers of ten words on average."""
    torch.manual_seed(0)
    sizes = Seq2SeqSizes(layers=1, hidden=256, embedding=128, vocabulary=8000, longest=30)
    model = Seq2Seq(sizes, sizes.vocabulary).eval()
    random = np.random.default_rng(0)
    contexts = plain.random_turns(random, 4096, sizes.vocabulary, sizes.longest)
    _let_it_end(model, contexts)
    ordered = sorted(contexts, key=len)

    def ours() -> list[list[int]]:
        answers = []
        for start in range(0, len(ordered), 512):
            part = [np.array(words) for words in ordered[start : start + 512]]
            lengths = torch.tensor([len(words) for words in part])
            answers += model.answer(pad(part, torch.device("cpu")), lengths, sizes.longest)
        return answers

    def theirs() -> list[list[int]]:
        return plain.greedy(model, contexts, sizes.longest, 512)

    same = np.mean([a == b for a, b in zip(sorted(ours()), sorted(theirs()), strict=True)])
    words = np.mean([len(answer) for answer in ours()])
    note = f"answers of {words:.0f} words; {same:.1%} the same"
    return [
        Ratio("greedy decoding", "responses", rate(4096, theirs, 3), rate(4096, ours, 3), 2, note),
    ]


def _let_it_end(model: Seq2Seq, contexts: list[list[int]]) -> None:
    """Gives an untrained model the habit of ending: raises the end's bias until answers have ten words or fewer."""
    some = [np.array(words) for words in sorted(contexts[:256], key=len)]
    lengths = torch.tensor([len(words) for words in some])
    while True:
        answers = model.answer(pad(some, torch.device("cpu")), lengths, 30)
        if np.mean([len(answer) for answer in answers]) <= 10:
            return
        model.output.bias.data[END] += 0.002


def training() -> list[Ratio]:
    """An epoch of the same LSTM (1 x 256, vocabulary 8,000), in real words a second; batches of 2,048 padded words.

    What is asked is asked of `bfloat16`: in 32 bits both loops spend most of their time in the same product, the
    output's, whose size only the padding changes (a factor of two at most).
    """
    table, which = dialogues()
    turns = [table[name].slice(0, 10_000).to_pylist() for name in ("context", "response")]
    sizes = Seq2SeqSizes(layers=1, hidden=256, embedding=128, vocabulary=8000, longest=30)
    vocabulary = Vocabulary.build(table["response"].to_pylist()[:50_000], sizes.vocabulary)
    encoded = EncodedDialogues.of_texts(*turns, vocabulary, sizes.longest)
    settings = TrainingSettings(
        optimiser="adam", learning_rate=0.001, clipping=1.0, batch_tokens=2048, epochs=1, patience=1
    )
    flat = [[side(i).tolist() for i in range(len(encoded))] for side in (encoded.context, encoded.response)]
    valid = EncodedDialogues(*(side[:8] for side in flat))
    batch = settings.batch_tokens // (2 * (sizes.longest + 1))

    def ours(precision: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            torch.manual_seed(0)
            how = settings.model_copy(update={"precision": precision})
            Trainer(Seq2Seq(sizes, len(vocabulary)), how, Path(folder), 0).fit(encoded, valid)

    def theirs() -> None:
        torch.manual_seed(0)
        plain.train(Seq2Seq(sizes, len(vocabulary)), *flat, batch, sizes.longest)

    words = int(encoded.lengths.sum())
    note = f"{which}; the plain loop takes {batch} dialogues at once, padded to {sizes.longest} words"
    slow = rate(words, theirs)
    return [
        Ratio(f"training, LSTM, {precision}", "words", slow, rate(words, partial(ours, precision)), asked, note)
        for precision, asked in (("float32", 1.4), ("bfloat16", 2))
    ]


def disentanglement() -> list[Ratio]:
    """Steps of Debiased-Chat's autoencoder at the widths of profile `real` (GRU 96, features 20 and 76), 32 utterances.

    With a shortlist ours scores rare words only where one stands; the plain step scores all of them everywhere.
    """
    table, which = dialogues()
    texts = table["response"].to_pylist()[:20_000]
    vocabulary = Vocabulary.build(texts, 8000)
    turns = vocabulary.turns(texts, 30)
    rows = np.array_split(np.argsort([len(turn) for turn in turns], kind="stable"), 625)
    chosen = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))[:60]]
    groups = torch.from_numpy(np.random.default_rng(1).integers(0, 2, len(turns)))
    ratios = []
    for words, shortlist, asked in ((8000, None, 1), (8000, 500, 2), (1500, 500, 1.2)):
        as_published = Disentanglement(hidden=96, embedding=96, unbiased=20, semantic=76)
        settings = as_published.model_copy(update={"shortlist": shortlist})
        known = [np.where(turn < words, turn, UNKNOWN) for turn in turns]
        counted = [turn[turn > 50] for turn in known]

        def models(settings: Disentanglement, words: int = words) -> tuple[Any, Any]:
            torch.manual_seed(0)
            return DisentanglementModel(settings, words), Discriminators(settings, words)

        def ours(
            settings: Disentanglement = settings, known: Any = known, counted: Any = counted, made: Any = models
        ) -> None:
            own = made(settings)
            optimisers = optimisers_of(*own, settings)
            for batch in chosen:
                training_step(
                    *own, settings, pad([known[i] for i in batch], torch.device("cpu")), groups[batch],
                    Bags.of([counted[i] for i in batch], torch.device("cpu")), **optimisers,
                )  # fmt: skip

        def theirs(
            settings: Disentanglement = as_published, known: Any = known, counted: Any = counted, made: Any = models
        ) -> None:
            own = plain.Disentangler(*made(settings), settings)
            for batch in chosen:
                own.step([known[i] for i in batch], groups[batch], [counted[i] for i in batch])

        task = f"step of the autoencoder, {words:,} words" + (f", `shortlist: {shortlist}`" if shortlist else "")
        note = which + ("; the plain step scores rare words everywhere" if shortlist else "")
        ratios.append(Ratio(task, "steps", rate(60, theirs, 2), rate(60, ours, 2), asked, note))
    return ratios


def classifiers() -> list[Ratio]:
    """An epoch of the thesis' CNN (300 wide, 100 filters of 3, 4 and 5 words), in texts a second; batches of 64."""
    table, which = dialogues()
    texts = [text for text in table["context"].to_pylist()[:6000] if text.split()]
    labels = np.random.default_rng(1).integers(0, 2, len(texts))
    classifier = ClassifierSpecification(architecture="cnn", network=NetworkSettings(vocabulary=8000))
    fitting = Fitting(epochs=1)
    tokens = new_tokens(classifier, texts)
    assert isinstance(tokens, WordTokens)

    def ours() -> None:
        encoded = tokens.encode(texts)
        train, valid = LabelledTexts(encoded, labels), LabelledTexts(encoded[:8], labels[:8])
        with tempfile.TemporaryDirectory() as folder:
            torch.manual_seed(0)
            fit(new_network(classifier, tokens), train, valid, fitting, Path(folder), 0)

    def theirs() -> None:
        torch.manual_seed(0)
        model = new_network(classifier, tokens)
        plain.train_classifier(model, tokens.vocabulary, texts, labels.tolist(), fitting.batch)

    longest = max(len(tokenize(text)) for text in texts)
    note = f"{len(texts):,} of {which}, cut into words once; the plain loop pads to the longest, {longest} words"
    return [Ratio("training, CNN classifier", "texts", rate(len(texts), theirs), rate(len(texts), ours), 2, note)]


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
    files = [source.counterparts[1] for source in corpus.phrases.values()]
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
        found.append(
            Ratio(f"perplexity of phrases, GPT-2 of 12 layers, {threads} threads", "tokens", slow, fast, asked, note)
        )
    torch.set_num_threads(1)
    return found


def equity() -> list[Ratio]:
    """The statistics of submitted systems in study 3, each on its own as a partition is."""
    sentences = make_equity_sentences()
    random = np.random.default_rng(0)
    scores = random.uniform(size=(sentences.num_rows, SYSTEMS))
    parts = [
        [row for row in sentences.to_pylist() if row["templates"] == kind and (whole or row["emotion"] is None)]
        for kind in TEMPLATE_SETS
        for whole in (True, False)
    ]
    places = [np.array([row["sentence_id"] - 1 for row in part]) for part in parts]
    designs = {name: [Design(sentences, name, kind) for kind in TEMPLATE_SETS] for name in DIMENSIONS}
    margin = Margin(absolute=0.01)

    def ours() -> None:
        for i in range(SYSTEMS):
            for name, both in designs.items():
                judge_equity(both, name, ["valence"], scores[:, i : i + 1], margin)

    def theirs() -> None:
        for i in range(_FEW_SYSTEMS):
            for part, place in zip(parts, places, strict=True):
                plain.equity_tests(part, scores[place, i].tolist())

    fast = rate(SYSTEMS, ours)
    slow = rate(_FEW_SYSTEMS, theirs)
    note = f"{SYSTEMS:,} systems in {SYSTEMS / fast:.1f} s (asked: 10), person-level tests too; the paper's tests alone plainly"
    return [Ratio("equity statistics", "systems", slow, fast, 100 / slow, note)]


def truth_inference() -> list[Ratio]:
    """Dawid-Skene and KOS beside crowd-kit's, as many iterations each, on a million labels of 100,000 items."""
    from crowdkit.aggregation import KOS as TheirKOS
    from crowdkit.aggregation import DawidSkene as TheirDawidSkene

    from fairness_pipeline.annotation.truth_inference import KOS, DawidSkene

    labels, _ = _labels(1_000_000)
    shuffled = labels.sample(frac=1, random_state=1).reset_index(drop=True)
    endless, rounds, messages = -np.inf, 25, 10
    theirs, ours = TheirDawidSkene(n_iter=rounds, tol=endless), DawidSkene(n_iter=rounds, tol=endless)
    same = (theirs.fit_predict(shuffled) == ours.fit_predict(shuffled)).mean()
    found = [
        ("Dawid-Skene", theirs, ours, 12, f"{rounds} iterations; {same:.2%} of the labels the same"),
        ("KOS", TheirKOS(n_iter=messages), KOS(n_iter=messages), 15, f"{messages} rounds of messages"),
    ]
    return [
        Ratio(
            f"{name}, a million labels",
            "labels",
            *(rate(len(labels), partial(m.fit, shuffled), 2) for m in both),
            asked,
            note,
        )
        for name, *both, asked, note in found
    ]


def _labels(count: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ten labels an item, by annotators of a thousand labels each; and in which group of a category each of them is."""
    draw, items, per = np.random.default_rng(0), count // 10, 10
    workers = max(50, items // 100)
    truth, rates = draw.integers(0, 2, items), draw.uniform(0.6, 0.95, (2, workers))
    who = (draw.integers(0, workers, items)[:, None] + np.arange(per) * (workers // per - 1)) % workers
    positive = np.where(truth[:, None] == 1, rates[0][who], 1 - rates[1][who])
    label = (draw.random(who.shape) < positive).astype(int)
    labels = pd.DataFrame({"task": np.repeat(np.arange(items), per), "worker": who.ravel(), "label": label.ravel()})
    return labels, pd.DataFrame({"group": draw.integers(0, 2, workers)})


def infer(count: int) -> None:
    """Every method of truth inference on `count` labels; prints seconds of each and peak memory."""
    from fairness_pipeline.annotation.truth_inference import GroupAnno
    from fairness_pipeline.annotation.truth_inference.registry import METHODS, method

    labels, who = _labels(count)
    found = {}
    for name in METHODS:
        own = method(name, {}, who)
        started = time.perf_counter()
        own.fit(labels)
        if isinstance(own, GroupAnno):
            own.contrasts()
        found[METHODS[name].title] = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"labels": count, "seconds": found, "peak_gib": peak}))


def inferred() -> list[dict[str, Any]]:
    """`infer` at ten thousand to ten million labels, each in a process of its own."""
    return [_in_a_process("--infer", count) for count in (10_000, 100_000, 1_000_000, 10_000_000)]


def memory(count: int) -> None:
    """Contexts, pairs, responses, measures and significance of `count` pairs; prints seconds and peak memory."""
    started = time.perf_counter()
    grammar = Grammar.load("grammars/twitter_sample.yaml")
    dimension = load_dimension("gender")
    texts = [d.context for d in grammar.generate(40_000, 1) if d.scene.dimension == "gender"]
    table = pa.table(
        {
            "dialogue_id": [f"d{i}" for i in range(count)],
            "context": [f"{texts[i % len(texts)]} {i}" for i in range(count)],
            "split": pa.repeat("audit", count),
        }
    )
    made = make_pairs(find_contexts(table, Swapper(dimension)).table, dimension, maximum=count, seed=1)

    def echo(asked: pa.Table) -> pa.Table:
        return pa.table({"response": [f"ok {len(text) * 7919 % 5003}" for text in asked["text"].to_pylist()]})

    with tempfile.TemporaryDirectory() as folder:
        answers = respond(made.table, echo, Path(folder)).table
    scores, settings = score_all(answers, dimension), SignificanceSettings(permutations=200)
    compared(answers, scores, settings=settings, seed=1, published={}, dimension=dimension)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"pairs": made.table.num_rows, "seconds": time.perf_counter() - started, "peak_gib": peak}))


def peaks() -> list[dict[str, float]]:
    """`memory` at 100,000, 300,000 and a million pairs, each in a process of its own."""
    return [_in_a_process("--memory", count) for count in (100_000, 300_000, 1_000_000)]


def _in_a_process(what: str, count: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "fairness_pipeline_tests.benchmark", what, str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def of_methods(sizes: list[dict[str, Any]]) -> list[str]:
    """What `inferred` found, as a table."""
    return [
        "| labels | " + " | ".join(sizes[0]["seconds"]) + " | peak |",
        "| ---: |" + " ---: |" * (len(sizes[0]["seconds"]) + 1),
        *(
            f"| {own['labels']:,} | " + " | ".join(f"{s:.2f} s" for s in own["seconds"].values())
            + f" | {own['peak_gib']:.2f} GiB |"
            for own in sizes
        ),
    ]  # fmt: skip


def content_hash() -> dict[str, float]:
    """Writing the responses to 300,000 pairs as the lake does, and as Parquet alone; the difference is their hash."""
    table = pa.table(
        {
            "pair_id": np.repeat(np.arange(PAIRS), 2),
            "side": ["a", "b"] * PAIRS,
            "context": [f"what is number {i} of all these" for i in range(2 * PAIRS)],
            "response": [f"this is {i % 54_000} for you" for i in range(2 * PAIRS)],
        },
        schema=RESPONSES,
    )
    with tempfile.TemporaryDirectory() as folder:
        lake, key = Lake(Path(folder)), {"dimension": "gender", "model": "m"}

        def ours() -> None:
            with lake.writing("responses", key, table, RESPONSES, Card("0" * 64, {})):
                pass

        path = Path(folder) / "plain.parquet"
        hashed, plainly = (1 / rate(1, work, 5) for work in (
            ours, lambda: pq.write_table(table, path, compression="zstd")
        ))  # fmt: skip
    return {"hashed": hashed, "plainly": plainly}


def orchestration() -> dict[str, float]:
    """Loading the definitions; a run of a small profile, less what its assets took; the same run again."""
    code = "import sys, time; t = time.perf_counter(); import fairness_pipeline.definitions; "
    code += "print(time.perf_counter() - t, 'torch' in sys.modules)"
    seconds, torch_loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.split()
    assert torch_loaded == "False"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        (data / "profiles").mkdir(parents=True)
        small = yaml.safe_load((ROOT / "data" / "profiles" / "sample.yaml").read_text())
        small["models"]["seq2seq"]["training"]["epochs"] = 1
        small["models"] = {"seq2seq": small["models"]["seq2seq"]}
        del small["sentiment_equity"]
        small["dialogue_fairness"] |= {"pairs": {"maximum": 200}, "on_request": []}
        (data / "profiles" / "small.yaml").write_text(yaml.safe_dump(small))
        environment = {**os.environ, "FAIRNESS_DATA": str(data), "FAIRNESS_HOME": folder}

        def run() -> tuple[float, str]:
            command = [sys.executable, "-m", "fairness_pipeline.cli", "run", "--profile", "small", "--workers", "1"]
            started = time.perf_counter()
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=ROOT)
            return time.perf_counter() - started, done.stdout

        first, output = run()
        steps = [float(found) for found in re.findall(r"^\[.*?\] .* (\d+\.\d) s$", output, re.MULTILINE)]
        again, _ = run()
    return {
        "load": float(seconds),
        "partitions": len(steps),
        "per_partition": (first - sum(steps)) / len(steps),
        "again": again,
        **content_hash(),
    }


def document(
    ratios: list[Ratio], grown: list[dict[str, float]], around: dict[str, float], sizes: list[dict[str, Any]]
) -> str:
    """The page."""
    lines = [
        "# Performance",
        "",
        "Written by `make benchmark`: plain code that works as the papers' released scripts do (one item at a time,",
        "`str.split`, VADER, lemmatiser and classifier response by response; "
        "`fairness_pipeline_tests/benchmark/plain.py`) and the",
        "pipeline, one after the other in one process. Trust the ratios; the rates are this machine's.",
        "",
        "| task | plain | here | ratio | asked | |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for r in ratios:
        lines.append(
            f"| {r.task} | {r.plain:,.4g} {r.unit}/s | {r.here:,.6g} {r.unit}/s | {r.here / r.plain:,.1f} "
            f"| {r.asked:.3g} | {r.note} |"
        )
    lines += ["", "## Memory", "", "Contexts, pairs, responses, measures and significance of one partition in one process;",
              "interpreter and libraries included.", "", "| pairs | peak | seconds |", "| ---: | ---: | ---: |"]  # fmt: skip
    lines += [f"| {g['pairs']:,} | {g['peak_gib']:.2f} GiB | {g['seconds']:.0f} |" for g in grown]
    per_pair = (grown[-1]["peak_gib"] - grown[0]["peak_gib"]) * 2**30 / (grown[-1]["pairs"] - grown[0]["pairs"])
    lines += [
        "",
        f"That is {per_pair:,.0f} bytes a pair on top of what the libraries take.",
        "",
        "## Truth inference",
        "",
        "Every method with its own settings on ten labels an item, one thread; GroupAnno with its intervals. Peak of all.",
        "",
        *of_methods(sizes),
        "",
        "## Around the work",
        "",
        f"- The definitions load in {around['load']:.1f} s, without torch.",
        f"- A run spends {around['per_partition']:.2f} s a partition on starting, planning, recording and reporting "
        f"({around['partitions']:.0f} partitions).",
        f"- The same run with nothing changed takes {around['again']:.1f} s.",
        f"- The responses to {PAIRS:,} pairs are written in {around['hashed']:.2f} s with the hash of their content, and in "
        f"{around['plainly']:.2f} s without (and without the flush to the disk).",
        "",
        "## Machine",
        "",
        f"{os.cpu_count()} processors ({platform.machine()}), {torch.get_num_threads()} threads for torch, "
        f"Python {platform.python_version()}, torch {version('torch')}, transformers {version('transformers')}, "
        f"pyarrow {version('pyarrow')}, dagster {version('dagster')}.",
    ]
    return "\n".join(lines) + "\n"


PARTS = {
    "pairs": pairs, "measures": measures, "worth": worth, "retrieval": retrieval, "decoding": decoding, "training": training,
    "disentanglement": disentanglement,
    "generation": generation, "classifiers": classifiers,
    "language_models": language_models, "equity": equity, "truth_inference": truth_inference,
}  # fmt: skip


def main() -> None:
    """Runs all, or the parts named; writes the page only when all ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    for own in ("--memory", "--infer"):
        parser.add_argument(own, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        return memory(arguments.memory)
    if arguments.infer:
        return infer(arguments.infer)
    torch.set_num_threads(1)  # as a partition computes, and both sides alike
    # Before anything else is loaded: a process that is started inherits the peak of who starts it.
    grown, around, sizes = ([], {}, []) if arguments.parts else (peaks(), orchestration(), inferred())
    ratios = []
    for name in arguments.parts or PARTS:
        for ratio in PARTS[name]():
            ratios.append(ratio)
            print(f"{ratio.task}: {ratio.plain:,.4g} -> {ratio.here:,.6g} {ratio.unit}/s, "
                  f"{ratio.here / ratio.plain:,.1f}x (asked {ratio.asked:.3g}) {ratio.note}", flush=True)  # fmt: skip
    if not arguments.parts:
        page = document(ratios, grown, around, sizes)
        RESULTS.write_text(page, encoding="utf-8")
        print(page)
    missed = [ratio.task for ratio in ratios if ratio.here / ratio.plain < ratio.asked]
    sys.exit(f"slower than asked: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
