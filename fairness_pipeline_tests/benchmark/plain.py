"""The same work done plainly, as the papers' released scripts do it: one item at a time, nothing remembered.

These are written for the benchmark alone. They split at white space, know no case and no punctuation, and so find less
than the pipeline does; only their speed is compared.
"""

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.stats import ttest_rel
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from fairness_pipeline.debiasing.dialogue.disentanglement import Discriminators, DisentanglementModel
from fairness_pipeline.debiasing.dialogue.settings import Disentanglement
from fairness_pipeline.lexicons.lemmas import lemmatize
from fairness_pipeline.lexicons.text import tokenize
from fairness_pipeline.models.batching import pad
from fairness_pipeline.models.classifiers.network import TextNetwork
from fairness_pipeline.models.dialogue.seq2seq import Seq2Seq
from fairness_pipeline.models.vocabulary import END, PAD, START, UNKNOWN, Vocabulary
from fairness_pipeline.statistics.resampling import MEASURES, NGrams, values


def word_pairs(lines: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Context pairs for lists of single words: split, look each word up, substitute one entry after another."""
    a_words, b_words = {a for a, _ in pairs}, {b for _, b in pairs}
    made = []
    for line in lines:
        words = line.split()
        has_a = any(word in a_words for word in words)
        has_b = any(word in b_words for word in words)
        if has_a == has_b:
            continue
        swapped = words
        for a, b in pairs:
            old, new = (a, b) if has_a else (b, a)
            swapped = [new if word == old else word for word in swapped]
        made.append((line, " ".join(swapped)) if has_a else (" ".join(swapped), line))
    return made


def phrase_pairs(lines: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Context pairs for lists of phrases: search and substitute one entry after another."""
    made = []
    for line in lines:
        has_a = any(re.search(rf"\b{re.escape(a)}\b", line) for a, _ in pairs)
        has_b = any(re.search(rf"\b{re.escape(b)}\b", line) for _, b in pairs)
        if has_a == has_b:
            continue
        swapped = line
        for a, b in pairs:
            old, new = (a, b) if has_a else (b, a)
            swapped = re.sub(rf"\b{re.escape(old)}\b", new, swapped)
        made.append((line, swapped) if has_a else (swapped, line))
    return made


class Measures:
    """The four measures of one response after another."""

    def __init__(self, lists: dict[str, tuple[str, ...]]) -> None:
        from profanity_check import predict_prob
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

        self.lists = {name: list(words) for name, words in lists.items()}
        self._offence = predict_prob
        self._sentiment = SentimentIntensityAnalyzer()

    def __call__(self, responses: Sequence[str]) -> tuple[float, list[tuple[float, float, dict[str, int]]]]:
        """Diversity of all, and offence, sentiment and attribute words of each."""
        words: list[str] = []
        bigrams: list[tuple[str, str]] = []
        scores = []
        for response in responses:
            tokens = response.split()
            words += tokens
            bigrams += itertools.pairwise(tokens)
            lemmas = [lemmatize(token) for token in tokens]
            scores.append(
                (
                    float(self._offence([response])[0]),
                    self._sentiment.polarity_scores(response)["compound"],
                    {name: sum(lemma in listed for lemma in lemmas) for name, listed in self.lists.items()},
                )
            )
        return (len(set(words)) + len(set(bigrams))) / (2 * len(words)), scores


def best_candidate(query: torch.Tensor, candidates: torch.Tensor) -> int:
    """The candidate with the greatest dot product, by sorting all of them."""
    return int(torch.sort(candidates @ query, descending=True).indices[0])


@torch.inference_mode()
def greedy(model: Seq2Seq, contexts: Sequence[list[int]], longest: int, batch: int) -> list[list[int]]:
    """Greedy responses in batches of one size: as they come, padded to `longest`, every row to the last step."""
    responses = []
    for start in range(0, len(contexts), batch):
        part = contexts[start : start + batch]
        padded = torch.full((len(part), longest), PAD)
        for row, words in enumerate(part):
            padded[row, : len(words)] = torch.tensor(words)
        state = model.encode(padded, torch.tensor([len(words) for words in part]))
        word = torch.full((len(part), 1), START)
        steps = []
        for step in range(longest):
            output, state = model.decoder(model.embedding(word), state)
            scores = model.output(output[:, 0])
            scores[:, [PAD, UNKNOWN, START]] = -torch.inf
            if step == 0:
                scores[:, END] = -torch.inf
            word = scores.argmax(dim=1, keepdim=True)
            steps.append(word)
        for row in torch.cat(steps, dim=1).tolist():
            responses.append(row[: row.index(END)] if END in row else row)
    return responses


def train(model: Seq2Seq, contexts: list[list[int]], responses: list[list[int]], batch: int, longest: int) -> None:
    """One epoch in the given order; all is padded to the longest turn there may be, and padding read and projected."""
    optimiser = torch.optim.Adam(model.parameters(), 0.001)
    for start in range(0, len(contexts), batch):
        part = slice(start, start + batch)
        rows = torch.zeros(len(contexts[part]), longest, dtype=torch.int64)
        targets = torch.zeros(len(contexts[part]), longest + 2, dtype=torch.int64)
        lengths = torch.full((len(rows),), longest)
        for i, (context, response) in enumerate(zip(contexts[part], responses[part], strict=True)):
            rows[i, : len(context)] = torch.tensor(context)
            targets[i, : len(response) + 2] = torch.tensor([START, *response, END])
        hidden, _ = model.decoder(model.embedding(targets[:, :-1]), model.encode(rows, lengths))
        scores = model.output(hidden)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets[:, 1:].flatten(), ignore_index=0)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()


class Disentangler:
    """A step of Debiased-Chat's autoencoder as its equations read: packed sequences, dense bags, 32 bits, Adam by hand.

    Args:
        model: The autoencoder.
        discriminators: D1 to D4.
        settings: Weights and rates.
    """

    def __init__(self, model: DisentanglementModel, discriminators: Discriminators, settings: Disentanglement) -> None:
        self.model, self.d, self.settings = model, discriminators, settings
        d = discriminators
        own = [*model.parameters(), *d.d1.parameters(), *d.d4.parameters()]
        self.autoencoder = torch.optim.Adam(own, settings.learning_rate)
        self.adversaries = torch.optim.Adam([*d.d2.parameters(), *d.d3.parameters()], settings.adversary_learning_rate)

    def step(self, turns: list[np.ndarray], groups: torch.Tensor, counted: list[np.ndarray]) -> None:
        """One batch: word numbers, groups, and the numbers of the words that count for a bag."""
        model, d, s = self.model, self.d, self.settings
        words = model.embedding.num_embeddings
        utterances = pad(turns, torch.device("cpu"))
        lengths = (utterances != PAD).sum(dim=1)
        bags = torch.zeros(len(turns), words)
        for row, own in enumerate(counted):
            for word in own:
                bags[row, word] += 1 / len(own)
        packed = pack_padded_sequence(model.embedding(utterances), lengths, batch_first=True, enforce_sorted=False)
        _, hidden = model.encoder(packed)
        f_u, f_s = model.to_unbiased(hidden[0]), model.to_semantic(hidden[0])
        adversary = functional.cross_entropy(d.d2(f_s.detach()), groups)
        adversary = adversary - (bags * functional.log_softmax(d.d3(f_u.detach()), dim=1)).sum(dim=1).mean()
        self.adversaries.zero_grad()
        adversary.backward()
        self.adversaries.step()
        marks = torch.full((len(turns), 1), START)
        targets = torch.cat([utterances, torch.full((len(turns), 1), PAD)], dim=1)
        targets[torch.arange(len(turns)), lengths] = END
        inputs = model.embedding(torch.cat([marks, utterances], dim=1))
        written, _ = model.decoder(inputs, torch.cat([f_u, f_s], dim=1).unsqueeze(0))
        loss = functional.cross_entropy(model.output(written).flatten(0, 1), targets.flatten(), ignore_index=PAD)
        loss = loss + s.k1 * functional.cross_entropy(d.d1(f_u), groups)
        for weight, scores in ((s.k2, d.d2(f_s)), (s.k3, d.d3(f_u))):
            log_p = functional.log_softmax(scores, dim=1)
            loss = loss + weight * (log_p.exp() * log_p).sum(dim=1).mean()
        loss = loss - s.k4 * (bags * functional.log_softmax(d.d4(f_s), dim=1)).sum(dim=1).mean()
        self.autoencoder.zero_grad()
        loss.backward()
        self.autoencoder.step()


def train_classifier(
    model: TextNetwork, vocabulary: Vocabulary, texts: list[str], labels: list[int], batch: int
) -> None:
    """One epoch in the given order; each text is cut into words when its turn comes, and padded to the longest of all."""
    optimiser = torch.optim.Adam(model.parameters(), 0.001)
    longest = max(len(tokenize(text)) for text in texts)
    for start in range(0, len(texts), batch):
        part = slice(start, start + batch)
        rows = torch.zeros(len(texts[part]), longest, dtype=torch.int64)
        for i, text in enumerate(texts[part]):
            words = vocabulary.encode(text, longest)
            rows[i, : len(words)] = torch.tensor(words)
        logits = model.logits(model.embed(rows), torch.full((len(rows),), longest))
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(labels[part]))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimiser.step()


def generate(model: Any, tokenizer: Any, prompts: Sequence[str], max_tokens: int) -> list[str]:
    """Hugging Face's own `generate`, one prompt after another."""
    answers = []
    for prompt in prompts:
        encoded = tokenizer(prompt, return_tensors="pt")
        with torch.inference_mode():
            written = model.generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                do_sample=False,
                max_new_tokens=max_tokens,
                min_new_tokens=1,
                pad_token_id=tokenizer.pad_token_id,
            )
        answers.append(tokenizer.decode(written[0, encoded["input_ids"].shape[1] :], skip_special_tokens=True).strip())
    return answers


def perplexities(model: Any, tokenizer: Any, texts: Sequence[str]) -> list[float]:
    """One text at a time, as RedditBias's released script does it."""
    found = []
    with torch.no_grad():
        for text in texts:
            tokens = torch.tensor([tokenizer(text)["input_ids"]])
            found.append(math.exp(model(tokens, labels=tokens).loss.item()))
    return found


def random_turns(random: np.random.Generator, count: int, words: int, longest: int) -> list[list[int]]:
    """Turns as word numbers, long as tweets are (2 to `longest` words, 11 on average)."""
    lengths = np.clip(random.poisson(11, count), 2, longest)
    return [random.integers(4, words, length).tolist() for length in lengths]


def equity_tests(sentences: list[dict[str, Any]], scores: list[float]) -> list[float]:
    """The paper's tests of one system, pair by pair from dictionaries: p for gender and for race."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for row, score in zip(sentences, scores, strict=True):
        place = row["template"], row["emotion_word"]
        found.setdefault(("gender", *place, row["pair"], row["gender"]), []).append(score)
        if row["race"]:
            found.setdefault(("race", *place, row["gender"], row["race"]), []).append(score)
    p_values = []
    for dimension, (a, b) in {
        "gender": ("male", "female"), "race": ("European American", "African American")
    }.items():  # fmt: skip
        keys = [key for key in found if key[0] == dimension and key[-1] == a]
        sides = [[sum(found[*key[:-1], side]) / len(found[*key[:-1], side]) for key in keys] for side in (a, b)]
        p_values.append(float(ttest_rel(*sides).pvalue))
    return p_values


def permutation_p(ngrams: NGrams, a: np.ndarray, b: np.ndarray, draws: int, seed: int) -> dict[str, float]:
    """Diversity's permutation test, a draw after the other, with arrays."""
    random = np.random.default_rng(seed)
    observed = np.abs(values(ngrams, a) - values(ngrams, b))
    reached = np.zeros(len(MEASURES), dtype=np.int64)
    for _ in range(draws):
        moved = random.random(len(a)) < 0.5
        sides = [values(ngrams, np.where(moved, *pair)) for pair in ((b, a), (a, b))]
        reached += np.abs(sides[0] - sides[1]) >= observed * (1 - 1e-9) - 1e-15
    return dict(zip(MEASURES, ((reached + 1) / (draws + 1)).tolist(), strict=True))
