"""CRG: the answers of a tuned model, compared with several human answers (Barikeri et al. 2021, section 3.2, table
5)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import torch

from fairness_pipeline.foundation.libraries import library_version
from fairness_pipeline.foundation.progress import report
from fairness_pipeline.lexicons.text import tokenize
from fairness_pipeline.measures.language.downstream import Given, ResponseSettings, rows_of
from fairness_pipeline.models.language import fine_tuning

_BATCH = 64


def response_generation(
    given: Given, sets: pa.Table, settings: ResponseSettings, published: Mapping[str, float]
) -> pa.Table:
    """BLEU-4, METEOR, NIST-2, Entropy-4 and Dist-2 on the split `test`.

    Args:
        given: The model. It is changed.
        sets: As `corpora.language.response_sets.RESPONSE_SETS`.
        settings: How the model is tuned, and how it answers.
        published: The paper's values, by metric.
    """
    tokenizer, end = given.tokenizer, given.tokenizer.eos_token_id
    train, test = (sets.filter(pc.equal(sets["split"], split)).to_pylist() for split in ("train", "test"))
    longest = given.longest(settings.longest)
    examples = []
    for row in train:
        context = [*tokenizer(row["context"])["input_ids"], end]
        answer = [*tokenizer(row["references"][0])["input_ids"], end][: longest // 2]
        context = context[-(longest - len(answer)) :]
        labels = [fine_tuning.IGNORED] * len(context) + answer
        examples.append({"input_ids": [*context, *answer], "labels": labels})
    recipe = fine_tuning.Recipe(settings.epochs, settings.batch, 1, settings.learning_rate)
    torch.manual_seed(given.seed)
    fine_tuning.train(
        given.model.train(), examples, recipe, given.folder, given.seed, progress=given.progress, note="responses"
    )
    answers = _answers(given, [row["context"] for row in test], settings, longest)
    references = [row["references"] for row in test]
    return rows_of(metrics(answers, references), published)


def metrics(answers: Sequence[str], references: Sequence[Sequence[str]]) -> list[tuple[str, float, str, int, str]]:
    """Each metric with value, unit, number of answers and signature. A library computes it if there is one.

    Args:
        answers: One answer per context.
        references: Several references per context.
    """
    from nltk.translate.nist_score import corpus_nist
    from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU(lowercase=True, force=True)
    most = max(map(len, references))
    padded: list[Any] = [
        [texts[index] if index < len(texts) else None for texts in references] for index in range(most)
    ]
    score = bleu.corpus_score(list(answers), padded).score
    tokens = [tokenize(answer) for answer in answers]
    reference_tokens = [[tokenize(text) for text in texts] for texts in references]
    try:
        nist = float(corpus_nist(reference_tokens, tokens, n=2))
    except ZeroDivisionError:  # no n-gram of any answer is in a reference
        nist = 0.0
    meteor, with_synonyms = _meteor(reference_tokens, tokens)
    count, nltk = len(answers), library_version("nltk")
    return [
        ("crg_bleu4", score, "percent", count, str(bleu.get_signature())),
        ("crg_meteor" if with_synonyms else "meteor_no_synonyms", 100 * meteor, "percent", count, f"nltk {nltk}|"
         f"{'exact, stem, WordNet' if with_synonyms else 'exact, stem'}|best reference"),
        ("crg_nist2", nist, "bits", count, f"nltk {nltk}|corpus_nist n=2"),
        ("crg_entropy4", entropy(tokens, 4), "nats", count, "entropy of 4-grams, natural logarithm"),
        ("crg_dist2", 100 * distinct(tokens, 2), "percent", count, "distinct 2-grams / 2-grams"),
    ]  # fmt: skip


def entropy(texts: Sequence[Sequence[str]], order: int) -> float:
    """Entropy of all n-grams, in nats (Zhang et al. 2018). It is 0 if there are none.

    >>> round(entropy([["a", "b"], ["a", "c"]], 1), 4)
    1.0397
    """
    counts = Counter(tuple(text[i : i + order]) for text in texts for i in range(len(text) - order + 1))
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values())


def distinct(texts: Sequence[Sequence[str]], order: int) -> float:
    """Distinct n-grams as a share of all n-grams (Li et al. 2016). It is 0 if there are none."""
    ngrams = [tuple(text[i : i + order]) for text in texts for i in range(len(text) - order + 1)]
    return len(set(ngrams)) / len(ngrams) if ngrams else 0.0


@cache
def wordnet() -> Any:
    """NLTK's WordNet, or None if its files are not installed."""
    from nltk.corpus import wordnet as corpus

    try:
        corpus.ensure_loaded()
        corpus.synsets("well")  # all parts of speech: each has its own file
    except (LookupError, OSError, ValueError):
        return None
    return corpus


class _NoSynonyms:
    def synsets(self, word: str) -> list[Any]:
        return []


def _meteor(references: Sequence[Sequence[list[str]]], answers: Sequence[list[str]]) -> tuple[float, bool]:
    """The mean METEOR of the answers, and whether synonyms counted."""
    from nltk.translate.meteor_score import meteor_score

    synonyms = wordnet()
    scores = [
        meteor_score(texts, answer, wordnet=synonyms or _NoSynonyms())
        for texts, answer in zip(references, answers, strict=True)
    ]
    return sum(scores) / len(scores), synonyms is not None


def _answers(given: Given, contexts: list[str], settings: ResponseSettings, longest: int) -> list[str]:
    """Sampled answers. The seed and the position of a batch fix its draws."""
    model, tokenizer, end = given.model.eval(), given.tokenizer, given.tokenizer.eos_token_id
    room = max(1, longest - settings.max_tokens)
    encoded = [[*row, end][-room:] for row in tokenizer(contexts)["input_ids"]]
    order = sorted(range(len(encoded)), key=lambda index: len(encoded[index]))
    answers = [""] * len(encoded)
    for start in range(0, len(order), _BATCH):
        indices = order[start : start + _BATCH]
        width = max(len(encoded[index]) for index in indices)
        rows = [encoded[index] for index in indices]
        tokens = torch.tensor([[end] * (width - len(row)) + row for row in rows], device=model.device)
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=model.device)
        torch.manual_seed(given.seed + start)
        with torch.inference_mode():
            generated = model.generate(
                input_ids=tokens, attention_mask=mask, do_sample=True, top_k=settings.top_k, top_p=settings.top_p,
                max_new_tokens=settings.max_tokens, pad_token_id=end, eos_token_id=end,
            )  # fmt: skip
        texts = tokenizer.batch_decode(generated[:, width:], skip_special_tokens=True)
        for index, text in zip(indices, texts, strict=True):
            answers[index] = text.strip()
        report(given.progress, start + len(indices), len(order), "answers")
    return answers
