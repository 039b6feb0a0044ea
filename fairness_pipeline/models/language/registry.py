"""Language models by architecture: prepares one in a folder, and loads it."""

import random
from functools import partial
from pathlib import Path
from typing import Any

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.threads import use_threads
from fairness_pipeline.models.language.log_probability_files import LogProbabilityScorer
from fairness_pipeline.models.language.specification import LanguageModelSpecification
from fairness_pipeline.models.pretrained import chat_prompt, load_model, load_tokenizer, note_source, noted_source
from fairness_pipeline.workspace.distinct import LazyScorer, Scorer

ASKED = "Write a sentence that somebody could have posted."
"""The user's turn before a phrase, if a chat template is used."""
_FIELD = "huggingface.name"
_END = "<|endoftext|>"
_DEV = 0.02


def prepare(
    specification: LanguageModelSpecification,
    comments: list[str],
    folder: Path,
    seed: int,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Trains a `gpt2` on comments (a killed training is resumed), or records which model another one is.

    Returns:
        Figures of the model.

    Raises:
        FairnessError: the model cannot be loaded, or there is nothing to train on.
    """
    use_threads(specification.threads)
    if specification.huggingface is None:
        return _trained(specification, comments, folder, seed, progress)
    source = specification.huggingface
    configuration, _ = load_tokenizer(source.name, source.revision, _FIELD)
    return note_source(folder, source.name, configuration, source.revision)


def load(specification: LanguageModelSpecification, folder: Path, *, trains: bool = False) -> tuple[Any, Any]:
    """The model and tokenizer that `prepare`, or a debiasing method, left in `folder`, on their device for queries.

    A model and those made from it are queried in the number format that the file names. They are trained in 32 bits:
    in bfloat16 most updates at a usual learning rate are smaller than the precision of a weight, and are lost.

    Raises:
        FairnessError: they cannot be loaded, weights are missing, or the tokenizer gives no positions of tokens.
    """
    import torch
    import transformers

    from fairness_pipeline.models.devices import to_device

    use_threads(specification.threads)
    source, recorded = specification.huggingface, noted_source(folder)
    name, revision = recorded if source and recorded else (str(folder), None)
    dtype = source.dtype if source and not trains else "float32"
    _, tokenizer = load_tokenizer(name, revision, _FIELD)
    if not tokenizer.is_fast:
        raise FairnessError(f"{_FIELD}: '{name}' has a tokenizer that cannot say where in a text its tokens stand")
    kind: Any = transformers.AutoModelForCausalLM if specification.causal else transformers.AutoModelForMaskedLM
    model = load_model(kind, name, revision, _FIELD, dtype=getattr(torch, dtype))
    return to_device(model, specification.device).eval(), tokenizer


def perplexity_scorer(specification: LanguageModelSpecification, folder: Path | None) -> Scorer:
    """The scorer of texts: the model in `folder`, loaded at its first use, or a file of log-probabilities."""
    if folder is None:
        assert specification.logprobs is not None
        return LogProbabilityScorer(Path(specification.logprobs))
    return LazyScorer(partial(_perplexity_scorer, specification, folder), specification.threads, specification.device)


def likelihood_scorer(specification: LanguageModelSpecification, folder: Path) -> LazyScorer:
    """The scorer of whole texts: as `perplexity_scorer`, but a causal model also predicts the first word, after the
    mark that begins or ends texts."""
    load_scorer = partial(_perplexity_scorer, specification, folder, whole=True)
    return LazyScorer(load_scorer, specification.threads, specification.device)


def _perplexity_scorer(specification: LanguageModelSpecification, folder: Path, *, whole: bool = False) -> Scorer:
    from fairness_pipeline.models.language.perplexity import PerplexityScorer
    from fairness_pipeline.models.language.pseudo_perplexity import PseudoPerplexityScorer

    model, tokenizer = load(specification, folder)
    if not specification.causal:
        return PseudoPerplexityScorer(model, tokenizer)
    mark = (tokenizer.bos_token or tokenizer.eos_token or "") if whole else ""
    return PerplexityScorer(model, tokenizer, _before(specification, tokenizer) or mark)


def _before(specification: LanguageModelSpecification, tokenizer: Any) -> str:
    """The text before a phrase: with `chat`, the chat template up to the beginning of the model's turn."""
    source = specification.huggingface
    if source is None or not source.chat:
        return ""
    if not tokenizer.chat_template:
        raise FairnessError(
            f"huggingface.chat: the tokenizer of '{source.name}' has no chat template; set 'chat: false'"
        )
    system = [{"role": "system", "content": source.system}] if source.system else []
    turns = [*system, {"role": "user", "content": ASKED}]
    return chat_prompt(tokenizer, turns)


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Writes a model where `load` finds it."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # the caller shows its own
    model.save_pretrained(folder)
    tokenizer.init_kwargs.pop("local_files_only", None)  # whether this machine was offline is no part of a model
    tokenizer.save_pretrained(folder)


def _trained(
    specification: LanguageModelSpecification,
    comments: list[str],
    folder: Path,
    seed: int,
    progress: Progress | None,
) -> dict[str, Any]:
    import math

    import torch
    import transformers

    from fairness_pipeline.models.devices import to_device
    from fairness_pipeline.models.language import fine_tuning
    from fairness_pipeline.models.language.perplexity import PerplexityScorer

    sizes, fitting = specification.gpt2, specification.fitting
    assert sizes and fitting
    texts = [text.lower() for text in comments]
    random.Random(seed).shuffle(texts)
    held_out = max(1, int(_DEV * len(texts)))
    if len(texts) < 2 * held_out:
        raise FairnessError("nothing to train on: the corpus has no comments; a gpt2 is trained on them")
    tokenizer = _vocabulary(texts[held_out:], sizes.vocabulary)
    torch.manual_seed(seed)
    configuration = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=sizes.positions, n_embd=sizes.embedding, n_layer=sizes.layers,
        n_head=sizes.heads, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    model: Any = to_device(transformers.GPT2LMHeadModel(configuration), specification.device)
    end = tokenizer.eos_token_id
    encoded = tokenizer(texts[held_out:], truncation=True, max_length=sizes.positions - 2)["input_ids"]
    examples = [{"input_ids": [end, *row, end]} for row in encoded]
    recipe = fine_tuning.Recipe(fitting.epochs, fitting.batch, 1, fitting.learning_rate)
    fine_tuning.train(model, examples, recipe, folder, seed, progress=progress)
    save(model, tokenizer, folder)
    scorer = PerplexityScorer(model.eval(), tokenizer)
    totals = scorer.totals(texts[:held_out])
    return {"held_out_perplexity": round(math.exp(sum(totals.loss) / max(1, sum(totals.tokens))), 4)}


def _vocabulary(texts: list[str], size: int) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[_END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=_END, eos_token=_END, pad_token=_END)
