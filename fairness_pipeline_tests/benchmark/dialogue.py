"""Dialogue models, their measures and their debiasing beside plain code."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch

from fairness_pipeline.debiasing.dialogue.disentanglement import (
    Bags,
    Discriminators,
    DisentanglementModel,
    optimisers_of,
    training_step,
)
from fairness_pipeline.debiasing.dialogue.settings import Disentanglement
from fairness_pipeline.lexicons.contexts import find_contexts, make_pairs
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.lexicons.text import encode_texts, tokenize
from fairness_pipeline.lexicons.vader import Vader
from fairness_pipeline.measures.dialogue import registry
from fairness_pipeline.measures.dialogue.breakdown import break_down, moving_together, swapped_words
from fairness_pipeline.measures.dialogue.dialogue_significance import compared
from fairness_pipeline.measures.dialogue.diversity import DiversityMeasure, indexed
from fairness_pipeline.measures.dialogue.instrument import check_instruments, swapped_texts
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings, neutral_reading
from fairness_pipeline.measures.dialogue.response_quality import measure_quality
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.dialogue.variations import Judged, judged_again, other_scores, subsets
from fairness_pipeline.models.batching import EncodedDialogues, pad
from fairness_pipeline.models.dialogue.retrieval import best_candidates
from fairness_pipeline.models.dialogue.seq2seq import Seq2Seq
from fairness_pipeline.models.dialogue.specification import Seq2SeqSizes
from fairness_pipeline.models.specification import TrainingSettings
from fairness_pipeline.models.training import Trainer
from fairness_pipeline.models.vocabulary import END, UNKNOWN, Vocabulary
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline.statistics.permutation import permutation_p
from fairness_pipeline.statistics.resampling import NGrams
from fairness_pipeline_tests.benchmark import plain
from fairness_pipeline_tests.benchmark.shared import (
    LONG,
    PAIRS,
    PUBLISHED,
    Ratio,
    dialogues,
    long_responses,
    rate,
    responses,
    score_all,
)

Senses = Literal["rules", "list"]


def pairs() -> list[Ratio]:
    """Pair construction, for a list of words and a list with phrases; with the rules of sense beside the list alone."""
    table, what = dialogues()
    lines = table["context"].to_pylist()
    ratios = []
    for name, reference, few, asked in (
        ("gender", plain.word_pairs, len(lines), 5),
        ("dialect", plain.phrase_pairs, 1000, 100),
    ):
        dimension = load_dimension(name)
        listed = dimension.all_pairs("published")

        def build(senses: Senses, dimension=dimension) -> None:
            found = find_contexts(table, Swapper(dimension, senses=senses == "rules"))
            make_pairs(found.table, dimension, maximum=PAIRS, seed=1, senses=senses)

        slow = rate(few, lambda reference=reference, few=few, listed=listed: reference(lines[:few], listed), 3)
        fast = rate(len(lines), lambda build=build: build("list"), 8)
        ruled = rate(len(lines), lambda build=build: build("rules"), 8)
        missed = (
            "two fifths of the lines hold a word: most of the time goes into exchanging it and counting what was found"
        )
        ratios.append(Ratio(f"pair construction, {name}", "lines", slow, fast, asked, what, missed))
        ratios.append(Ratio(f"rules of sense beside the list, {name}", "lines", fast, ruled, 0.5, what))
    return ratios


def measures() -> list[Ratio]:
    """The papers' four measures at their 300,000 pairs, and all of ours beside these."""
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
        fast = rate(table.num_rows, lambda table=table: score_all(table, gender, of=PUBLISHED), 2)
        every = rate(table.num_rows, lambda table=table: score_all(table, gender), 2)
        ratios.append(Ratio(f"four measures, 2 x 300,000 responses, {share}", "responses", slow, fast, asked))
        missed = "the four have become faster than refusals and length, since this was asked"
        ratios.append(Ratio(f"all measures beside these four, {share}", "responses", fast, every, 1 / 1.2, "", missed))
    table = long_responses(4_000)
    texts = table["response"].to_pylist()[:100]
    slow = rate(len(texts), lambda: reference(texts))
    fast = rate(table.num_rows, lambda: score_all(table, gender, of=PUBLISHED), 2)
    ratios.append(Ratio(f"four measures, 4,000 responses of {LONG} words", "responses", slow, fast, 7))
    return ratios


def vader() -> Iterator[Ratio]:
    """VADER's compound scores of distinct real texts, beside its library; equal to the last bit."""
    table, source = dialogues()
    tweets = pa.concat_arrays([table["context"].unique(), table["response"].unique()]).unique().to_pylist()
    note = f"{len(tweets):,} texts of {source}, each token seen for the first time too"
    yield _beside_vader(tweets, 3, note)
    yield _beside_vader(long_responses(2_000)["response"].to_pylist(), 10, f"2,000 texts of {LONG} words")


def _beside_vader(texts: list[str], asked: float, note: str) -> Ratio:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    library = SentimentIntensityAnalyzer()
    scores: dict[str, list[float]] = {}

    def ours() -> None:
        scores["here"] = Vader().compound(texts)

    def theirs() -> None:
        scores["plain"] = [library.polarity_scores(text)["compound"] for text in texts]

    slow, fast = rate(len(texts), theirs), rate(len(texts), ours, 2)
    assert scores["here"] == scores["plain"]
    return Ratio("VADER, distinct texts, beside its library", "texts", slow, fast, asked, note)


def bleu() -> list[Ratio]:
    """BLEU-1 to -3 of 2,000 answers and of the 20 most frequent constant ones, beside sacreBLEU called for each."""
    import sacrebleu

    table, what = dialogues()
    references = table["response"].slice(0, 2000)
    models = [table["response"].slice(start, 2000) for start in (2000, 4000, 6000)]
    frequent = table["response"].slice(8000, 20).to_pylist()
    given = references.to_pylist()

    def ours() -> list[float]:
        tables = [measure_quality(model, references, None, {}, frequent) for model in models]
        return [row["value"] for own in tables for row in own.to_pylist() if row["metric"].startswith("bleu")]

    def theirs() -> list[float]:
        found = []
        for model in models:
            for order in (1, 2, 3):
                metric = sacrebleu.BLEU(max_ngram_order=order, lowercase=True, force=True)
                found.append(metric.corpus_score(model.to_pylist(), [given]).score)
                for text in frequent:
                    metric.corpus_score([text] * len(given), [given])
        return found

    slow, fast = rate(len(models), theirs), rate(len(models), ours)
    note = f"{what}; distinct-n too here; three models of one corpus"
    return [Ratio("response quality, beside sacreBLEU", "models", slow, fast, 2, note)]


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
    compared(table, tables, settings=judged, seed=1, published={}, masked=gender)
    measured = time.perf_counter() - started

    started = time.perf_counter()
    single = [measure for measure in registry.measures() if measure.scorer]
    (together,) = (measure for measure in registry.measures() if isinstance(measure, DiversityMeasure))
    words, values = swapped_words(pairs), [(m, m.readings(tables[m.table])) for m in single]
    break_down(pairs, words, values, {})
    grid = [*subsets(words, PAIRS, 1), *other_scores(single, tables, table, {}, gender)]
    readings = indexed(table, neutral_reading(table, gender), judged)
    clusters = moving_together(words, names_the_group=gender.names_the_group)
    judged_again(Judged(values, (together, readings), clusters), grid, judged)
    varied = time.perf_counter() - started

    started = time.perf_counter()
    swapped = swapped_texts(human, gender, 1)
    scored = registry.scorings(single, settings, gender)
    check_instruments(swapped, single, scored, gender, significance=judged, texts="responses")
    checked = time.perf_counter() - started
    note = (
        f"measures and comparison {measured:.0f} s; breakdown and variations {varied:.1f} s, instruments "
        f"{checked:.1f} s ({swapped.num_rows // 2:,} texts; once a corpus and dimension, for all its models)"
    )
    missed = "since this was asked, each variation judges both readings of each measure, diversity's too"
    return [Ratio("what a verdict is worth", "runs", 1 / measured, 1 / (varied + checked), 5, note, missed)]


def encoding() -> Iterator[Ratio]:
    """Texts as the numbers of their words, beside a loop over the words of each text; the same words."""
    for table, words in ((responses(100_000, 100_000), 10), (long_responses(10_000), LONG)):
        column = table["response"]
        texts = column.to_pylist()
        numbers: dict[str, int] = {}

        def theirs(texts: list[str] = texts, numbers: dict[str, int] = numbers) -> list[list[int]]:
            return [[numbers.setdefault(word, len(numbers)) for word in tokenize(text)] for text in texts]

        slow, fast = rate(len(texts), theirs), rate(len(texts), partial(encode_texts, column), 2)
        encoded = encode_texts(column)
        listed = np.concatenate([np.array(row, dtype=np.int64) for row in theirs()])
        assert np.array_equal(listed, np.array([numbers[word] for word in encoded.words])[encoded.codes])
        yield Ratio(f"words of {len(texts):,} texts of {words} words", "texts", slow, fast, 2)


def permutation() -> Iterator[Ratio]:
    """Diversity's permutation test, against a draw at a time; the same p."""
    texts, random = dialogues()[0]["response"].unique().to_pylist(), np.random.default_rng(0)
    yield _permutation(texts, *random.integers(0, len(texts), (2, PAIRS)), 5)
    long = long_responses(8_000)["response"].to_pylist()
    yield _permutation(long, np.arange(0, 8_000, 2), np.arange(1, 8_000, 2), 5, f", answers of {LONG} words")


def _permutation(texts: list[str], a: np.ndarray, b: np.ndarray, asked: float, kind: str = "") -> Ratio:
    draws, few = 1000, 15

    def ours(number: int = draws) -> dict[str, float]:
        return permutation_p(NGrams(tokenized), a, b, number, 1)

    def theirs() -> dict[str, float]:
        return plain.permutation_p(NGrams(tokenized), a, b, few, 1)

    tokenized = [tokenize(text) for text in texts]
    assert ours(few) == theirs()
    note = f"{len(a):,} pairs, {len(texts):,} distinct answers; {draws:,} draws here, {few} plainly"
    return Ratio(f"diversity, permutation test{kind}", "draws", rate(few, theirs), rate(draws, ours), asked, note)


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
    ratios = [Ratio("retrieval, best of 500,000", "contexts", slow, fast, 15, "the same answers but for ties")]
    with suppress(ImportError):
        import faiss

        faiss.omp_set_num_threads(1)
        index = faiss.IndexFlatIP(candidates.shape[1])
        index.add(candidates.numpy())
        theirs = rate(len(queries), lambda: index.search(queries.numpy(), 1), 2)
        ratios.append(Ratio("retrieval, best of 500,000, beside faiss", "contexts", theirs, fast, 0.85, "IndexFlatIP"))
    return ratios


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
