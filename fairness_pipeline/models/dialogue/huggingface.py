"""Any causal language model or encoder-decoder of the `transformers` library, by id or folder."""

import math
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.thoughts import without_thoughts
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.pretrained import (
    chat_prompt,
    load_model,
    load_tokenizer,
    note_source,
    noted_source,
    positions_of,
)
from fairness_pipeline.models.specification import SYSTEM, HuggingFaceSource, given

_BATCH = 64
_WEIGHTS = ("*.safetensors", "*.bin")
_FIELD = "huggingface.name"
_FEW_TOKENS = 1000
_GUESSING = 0.9
"""A model has learnt nothing if its loss is above this share of the loss of a uniform draw."""
_PLAIN_ENGLISH = (
    "It was raining, so we stayed at home and watched a film.",
    "Can you tell me what time the shop opens tomorrow?",
    "I have been working here for about three years now.",
    "She put the keys on the table and went to bed.",
    "They are going to visit their friends in the summer.",
    "Thank you very much for your help, it was very kind of you.",
)


def prepare(
    specification: ModelSpecification,
    dialogues: pa.Table,
    folder: Path,
    seed: int,
    progress: Progress | None = None,
    penalty: Any = None,
    dropout: float | None = None,
) -> dict[str, object]:
    """Looks up the model and records its revision in `folder`; fine-tunes it there if its file has `training`.

    Without `training` in its file, the weights are not loaded and only the first three arguments matter. Otherwise the
    arguments are those of `fine_tune`.

    Raises:
        FairnessError: the model does not exist, its folder has no weights, or a tokenizer or chat template is missing.
    """
    source = given(specification.huggingface)
    local = Path(source.name)
    if local.is_absolute() and local.is_dir() and not any(path for pattern in _WEIGHTS for path in local.glob(pattern)):
        raise FairnessError(
            f"huggingface.name: the folder {local} holds no weights ({' or '.join(_WEIGHTS)}); save the model there "
            "with save_pretrained"
        )
    configuration, _ = _tokenizer(source, source.revision)
    figures = note_source(folder, source.name, configuration, source.revision)
    if not specification.training:
        return figures
    from fairness_pipeline.models.dialogue.fine_tuning import fine_tune, set_dropout

    responder = HuggingFaceResponder(specification, folder, seed)
    model, tokenizer = responder.load_base(trains=True)
    if tokenizer.eos_token_id is None:
        raise FairnessError(f"huggingface.name: the tokenizer of '{source.name}' has no end token to learn to stop at")

    def prompt_tokens(contexts: list[str]) -> list[list[int]]:
        tokens: list[list[int]] = responder.encode(model, tokenizer, contexts)["input_ids"]
        return tokens

    if dropout is not None:
        set_dropout(model, dropout)
    trained = fine_tune(model, tokenizer, prompt_tokens, specification, dialogues, folder, seed, progress, penalty)
    return {**figures, **trained}


class HuggingFaceResponder:
    """Answers contexts in batches: a table with a column `text` in, one with `response` out.

    What is sampled depends on the seed and on the contexts of a batch.
    """

    def __init__(self, specification: ModelSpecification, folder: Path, seed: int) -> None:
        self.specification = specification
        self.folder = folder
        self.seed = seed

    def __call__(self, contexts: pa.Table) -> pa.Table:
        """The responses, in the order of the rows. Sampled responses depend on the other contexts in their batch."""
        texts = contexts["text"].to_pylist()
        if not texts:
            return pa.table({"response": pa.array([], pa.string())})
        from fairness_pipeline.models.devices import in_batches, roomy, rows_beside

        decoding = self.specification.decoding
        model, tokenizer = self.model
        # What is drawn depends on the batch, which is therefore the same on every device.
        size = decoding.batch or _BATCH
        if not (decoding.batch or decoding.temperature):
            longest = len(self.encode(model, tokenizer, [max(texts, key=len)])["input_ids"][0])
            size = roomy(size, model.device)
            size = min(size, rows_beside(model, longest + decoding.max_tokens) or size)
        parts = in_batches(lambda start, end: self.answer(texts[start:end]), len(texts), size, model)
        responses = [response for part in parts for response in part]
        return pa.table({"response": pa.array(responses, pa.string())})

    def generation_options(self) -> dict[str, Any]:
        """Further options of `generate`, in addition to the tokens and the decoding."""
        return {}

    def answer(self, contexts: list[str]) -> list[str]:
        """The responses to some contexts, in one batch."""
        import torch

        model, tokenizer = self.model
        decoding = self.specification.decoding
        encoded = self.encode(model, tokenizer, contexts, return_tensors="pt", padding=True).to(model.device)
        encoded.pop("token_type_ids", None)
        if decoding.temperature:
            digest = blake2b("\x1f".join([str(self.seed), *contexts]).encode(), digest_size=8).digest()
            torch.manual_seed(int.from_bytes(digest) >> 1)
        with torch.inference_mode():
            written = model.generate(**encoded, **self.generation_options())
        if self.specification.architecture == "causal_lm":
            written = written[:, encoded["input_ids"].shape[1] :]
        texts = tokenizer.batch_decode(written, skip_special_tokens=True)
        if not decoding.keep_thoughts:
            texts = [without_thoughts(text) for text in texts]
        return [_until(text, decoding.stop) for text in texts]

    def examination(self) -> dict[str, Any]:
        """Whether the model `guesses`: it predicts plain English no better than a uniform draw among all its tokens.

        Weights that were never trained guess; a trained model of any language or task hardly ever does. A model with
        few tokens is not examined.
        """
        import torch

        model, tokenizer = self.model
        tokens = len(tokenizer)
        if tokens < _FEW_TOKENS:
            return {}
        encoded = tokenizer(list(_PLAIN_ENGLISH), return_tensors="pt", padding=True).to(model.device)
        encoded.pop("token_type_ids", None)
        labels = encoded["input_ids"].masked_fill(encoded["attention_mask"] == 0, -100)
        with torch.inference_mode():
            loss = float(model(**encoded, labels=labels).loss)
        return {
            "plain_english_perplexity": round(math.exp(min(loss, 100.0)), 1) if math.isfinite(loss) else None,
            "guesses": not loss <= _GUESSING * math.log(tokens),  # a loss that is no number also counts as guessing
        }

    def encode(self, model: Any, tokenizer: Any, contexts: list[str], **options: Any) -> Any:
        """The tokens of the contexts' prompts, cut to the positions that an answer leaves."""
        return tokenizer(
            [self._prompt(tokenizer, context) for context in contexts],
            truncation=True,
            max_length=self._longest_prompt(model),
            add_special_tokens=not given(self.specification.huggingface).chat,  # a chat template adds its own
            **options,
        )

    def _generation(self, model: Any, tokenizer: Any) -> Any:
        """Exactly the declared decoding. Only the special tokens come from the model's own generation file."""
        from transformers import GenerationConfig

        decoding, published = self.specification.decoding, model.generation_config
        sampled = {"do_sample": True, "temperature": decoding.temperature, "top_p": decoding.top_p, "top_k": 0}
        return GenerationConfig(
            **(sampled if decoding.temperature else {"do_sample": False}),
            max_new_tokens=decoding.max_tokens,
            min_new_tokens=0 if decoding.keep_empty else 1,
            bos_token_id=published.bos_token_id,
            eos_token_id=published.eos_token_id,
            decoder_start_token_id=published.decoder_start_token_id,
            forced_bos_token_id=published.forced_bos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )

    def _prompt(self, tokenizer: Any, context: str) -> str:
        source = given(self.specification.huggingface)
        text = source.filled(context)
        if not source.chat:
            return text.replace(SYSTEM, "\n")
        return chat_prompt(tokenizer, source.messages(text))

    def _longest_prompt(self, model: Any) -> int:
        """The largest number of tokens of a prompt: the model's positions minus those of the answer."""
        positions = positions_of(model) or 1024
        answer = self.specification.decoding.max_tokens if self.specification.architecture == "causal_lm" else 0
        if positions <= answer:
            raise FairnessError(
                f"decoding.max_tokens: the model has {positions} positions, which leaves no room for a prompt beside "
                f"{answer} tokens of answer; lower it"
            )
        return positions - answer

    @cached_property
    def model(self) -> tuple[Any, Any]:
        """The model, ready to answer, and its tokenizer; `prepare` needs neither."""
        model, tokenizer = self.load_base()
        if self.specification.training:
            from fairness_pipeline.models.dialogue.fine_tuning import CausalDialogueModel

            CausalDialogueModel(model).restore(self.folder)
        return model.eval(), tokenizer

    def load_base(self, *, trains: bool = False) -> tuple[Any, Any]:
        """The published model and tokenizer, on their device; `prepare` must have recorded which they are.

        If it `trains`, it is in 32 bits: bfloat16 loses small updates.

        Raises:
            FairnessError: the model or tokenizer cannot be loaded, or weights are missing.
        """
        import torch
        import transformers

        from fairness_pipeline.models.devices import to_device

        source = given(self.specification.huggingface)
        recorded = noted_source(self.folder)
        assert recorded
        revision = recorded[1]
        _, tokenizer = _tokenizer(source, revision)
        causal = self.specification.architecture == "causal_lm"
        kind: Any = transformers.AutoModelForCausalLM if causal else transformers.AutoModelForSeq2SeqLM
        model = load_model(
            kind, source.name, revision, _FIELD, dtype=getattr(torch, "float32" if trains else source.dtype)
        )
        if causal:
            tokenizer.padding_side = tokenizer.truncation_side = "left"  # the model answers the end of a prompt
        # `generate` takes missing options from the model's own configuration: it must be replaced, not updated.
        model.generation_config = self._generation(model, tokenizer)
        return to_device(model, self.specification.device), tokenizer


def responder(specification: ModelSpecification, folder: Path, work: Path, seed: int) -> HuggingFaceResponder:
    """The responder of the model that `prepare` recorded in `folder`."""
    return HuggingFaceResponder(specification, folder, seed)


def _tokenizer(source: HuggingFaceSource, revision: str | None) -> tuple[Any, Any]:
    """The configuration and the tokenizer, which pads and has a chat template if the file asks for one."""
    configuration, tokenizer = load_tokenizer(source.name, revision, _FIELD)
    if source.chat and not tokenizer.chat_template:
        raise FairnessError(
            f"huggingface.chat: the tokenizer of '{source.name}' has no chat template; set 'chat: false' and write it "
            "into 'prompt'"
        )
    return configuration, tokenizer


def _until(text: str, stops: tuple[str, ...]) -> str:
    """`text` up to the first of `stops`; a stop within its leading white space does not count."""
    text = text.strip()
    ends = [end for end in (text.find(stop) for stop in stops) if end >= 0]
    return text[: min(ends)].strip() if ends else text
