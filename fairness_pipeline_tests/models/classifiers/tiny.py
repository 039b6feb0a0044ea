"""Small classifiers and texts for tests."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairness_pipeline.models.classifiers.specification import NetworkSettings
from fairness_pipeline.models.classifiers.words import WordNetwork

NETWORK = {"embedding": 12, "filters": 8, "widths": [2, 3], "hidden": 12, "vocabulary": 200, "dropout": 0.0}


def network(architecture: str, words: int = 40) -> WordNetwork:
    """A CNN or RNN over `words` numbered words."""
    return WordNetwork(architecture, NetworkSettings.model_validate(NETWORK), words)


def encoder(folder: Path, words: Sequence[str]) -> str:
    """A BERT of one layer with random weights and these words; returns its folder."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    vocabulary = ["[UNK]", "[PAD]", *words]
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]", pad_token="[PAD]").save_pretrained(folder)
    torch.manual_seed(0)
    configuration = BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=32, pad_token_id=1,
    )  # fmt: skip
    BertModel(configuration).save_pretrained(folder)
    return str(folder)


def told_by_a_word(count: int, seed: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Texts, labels and groups: `good` or `bad` tells the label, `yes` or `yup` the group, both nearly always."""
    random = np.random.default_rng(seed)
    labels, groups = random.integers(0, 2, count), random.integers(0, 2, count)
    fill = ["the", "phone", "is", "a", "bike", "so", "old"]
    texts = []
    for label, group in zip(labels, groups, strict=True):
        words = [str(word) for word in random.choice(fill, random.integers(3, 7))]
        words.insert(int(random.integers(len(words))), ("bad", "good")[label] if random.random() < 0.9 else "new")
        words.insert(int(random.integers(len(words))), ("yes", "yup")[group])
        texts.append(" ".join(words))
    return texts, labels, groups
