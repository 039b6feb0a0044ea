"""Saves small random Hugging Face models for tests, without downloads."""

from pathlib import Path

WORDS = [
    "<unk>",
    "<pad>",
    "</s>",
    "what",
    "is",
    "red",
    "green",
    "blue",
    "it",
    "user",
    ":",
    "bot",
    "the",
    "man",
    "woman",
]


def tokenizer(*, pad: bool = True, end: bool = True, template: str | None = None):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token="<unk>",
        **({"pad_token": "<pad>"} if pad else {}),
        **({"eos_token": "</s>"} if end else {}),
    )
    fast.chat_template = template
    return fast


def causal_lm(folder: Path, positions: int = 32, **options: object) -> str:
    """A GPT-2 of two layers that writes random words; returns its folder."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    configuration = GPT2Config(
        vocab_size=len(WORDS), n_positions=positions, n_embd=16, n_layer=2, n_head=2, eos_token_id=2, bos_token_id=2,
        initializer_range=1.0,
    )  # fmt: skip
    GPT2LMHeadModel(configuration).save_pretrained(folder)
    tokenizer(**options).save_pretrained(folder)
    return str(folder)


def classifier(folder: Path) -> str:
    """A GPT-2 of one layer with random weights and the labels NEGATIVE and POSITIVE; returns its folder."""
    import torch
    from transformers import GPT2Config, GPT2ForSequenceClassification

    torch.manual_seed(0)
    configuration = GPT2Config(
        vocab_size=len(WORDS), n_positions=64, n_embd=16, n_layer=1, n_head=2, pad_token_id=1,
        id2label={0: "NEGATIVE", 1: "POSITIVE"}, label2id={"NEGATIVE": 0, "POSITIVE": 1},
    )  # fmt: skip
    GPT2ForSequenceClassification(configuration).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


def encoder_decoder(folder: Path) -> str:
    """A T5 of one layer that writes random words; returns its folder."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    configuration = T5Config(
        vocab_size=len(WORDS), d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, eos_token_id=2, pad_token_id=1,
        decoder_start_token_id=1, initializer_factor=5.0,
    )  # fmt: skip
    T5ForConditionalGeneration(configuration).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


def masked_lm(folder: Path, positions: int = 64) -> str:
    """A BERT of two layers with random weights, whose words are letters; returns its folder."""
    import string

    import torch
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    torch.manual_seed(0)
    letters = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase)]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "he", "she", "was", "late", *letters, "."]
    fast = BertTokenizerFast(vocab={word: number for number, word in enumerate(words)}, model_max_length=positions)
    configuration = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=positions, initializer_range=1.0,
    )  # fmt: skip
    BertForMaskedLM(configuration).save_pretrained(folder)
    fast.save_pretrained(folder)
    return str(folder)
