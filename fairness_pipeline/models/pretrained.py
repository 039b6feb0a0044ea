"""Loads models of the `transformers` library, and refuses unusable ones.

`name` is an id or a folder, `revision` a commit, branch or tag of an id, and `field` the YAML key that names the model,
for messages.
"""

import json
from pathlib import Path
from typing import Any

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.plain_text import first_line
from fairness_pipeline.models.folders import check_folder, check_id, model_folder

_SOURCE = "source.json"
_NO_LIMIT = 1_000_000
"""A tokenizer without a limit reports a longest text above this number."""
_COUNTS_FROM_PADDING = ("camembert", "longformer", "roberta", "xlm-roberta", "xlm-roberta-xl")


def load_tokenizer(name: str, revision: str | None, field: str) -> tuple[Any, Any]:
    """The configuration of a model, and its tokenizer, with a padding token.

    Raises:
        FairnessError: the model cannot be loaded, its id is also a folder, or it comes with an adapter; or the
            tokenizer is empty or has no token for padding.
    """
    import transformers
    from transformers.utils.peft_utils import find_adapter_config_file

    check_id(name, field)
    if Path(name).is_dir():
        check_folder(Path(name))
    try:
        adapter = find_adapter_config_file(name, revision=revision)
        configuration = transformers.AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=False)
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=False)
    except Exception as error:  # the library passes on whatever its files raise
        raise _not_loadable(name, revision, field, error) from error
    if adapter:
        raise FairnessError(
            f"{field}: '{name}' has an adapter ({Path(adapter).name}), and without it another model would be audited: "
            "merge it (merge_and_unload) and save the whole model, or serve it and name it as an endpoint"
        )
    if not tokenizer("a", add_special_tokens=False)["input_ids"]:  # the library makes an empty one if it finds none
        raise FairnessError(
            f"{field}: '{name}' has no tokenizer, or one without words; save it there with save_pretrained, beside the "
            "weights"
        )
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token_id is None:
            raise FairnessError(
                f"{field}: the tokenizer of '{name}' has neither a padding nor an end token, so texts cannot be "
                "batched; set pad_token in its tokenizer_config.json"
            )
        tokenizer.pad_token = tokenizer.eos_token  # padding is masked, so any token works
    return configuration, tokenizer


def load_model(kind: Any, name: str, revision: str | None, field: str, **options: Any) -> Any:
    """A model with all its weights.

    Raises:
        FairnessError: the model cannot be loaded, or weights are missing.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()  # the caller shows its own
    try:
        model, information = kind.from_pretrained(
            name, revision=revision, output_loading_info=True, trust_remote_code=False, **options
        )
    except Exception as error:
        raise _not_loadable(name, revision, field, error) from error
    if missing := sorted(information["missing_keys"]):
        raise FairnessError(
            f"{field}: '{name}' lacks {len(missing)} of the weights of a {type(model).__name__} ({missing[0]}, ...): "
            "they would be initialised at random; was the model saved for this task?"
        )
    broken = next((key for key, value in model.named_parameters() if not value.isfinite().all()), None)
    if broken:
        raise FairnessError(
            f"{field}: '{name}' holds weights that are not numbers (NaN or infinite, the first in {broken}): its "
            "training broke; take an earlier checkpoint"
        )
    return model


def note_source(folder: Path, name: str, configuration: Any, revision: str | None) -> dict[str, Any]:
    """Records which model was found, so that later loads use the same commit; returns the model's figures."""
    commit = getattr(configuration, "_commit_hash", None) or revision
    with replacing(folder / _SOURCE) as path:
        path.write_text(json.dumps({"name": name, "revision": commit}), encoding="utf-8")
    local = model_folder(name)
    return {"model_type": configuration.model_type, "revision": commit or (local.sha256 if local else None)}


def noted_source(folder: Path) -> tuple[str, str | None] | None:
    """The name and the commit that `note_source` recorded; None if it recorded nothing."""
    path = folder / _SOURCE
    if not path.is_file():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    return record["name"], record["revision"]


def chat_prompt(tokenizer: Any, turns: list[dict[str, str]]) -> str:
    """Turns (`role` and `content` each) in a tokenizer's chat template, up to the beginning of the model's turn."""
    prompt: str = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    return prompt


def positions_of(model: Any) -> int | None:
    """The largest number of tokens that a model reads; None if its configuration does not say."""
    positions = getattr(model.config, "max_position_embeddings", None)
    return positions if isinstance(positions, int) and positions > 0 else None


def longest_of(model: Any, tokenizer: Any) -> int | None:
    """The largest number of tokens of a text, by the tokenizer and the model's positions; None if neither says."""
    positions = positions_of(model)
    if positions and model.config.model_type in _COUNTS_FROM_PADDING and model.config.pad_token_id is not None:
        positions -= model.config.pad_token_id + 1  # its positions start after the one for padding
    limits = [limit for limit in (positions, tokenizer.model_max_length) if limit and limit < _NO_LIMIT]
    return min(limits, default=None)


def _not_loadable(name: str, revision: str | None, field: str, error: Exception) -> FairnessError:
    if is_path(name) and not Path(name).is_dir():
        return FairnessError(f"{field}: there is no folder {name}; check the path in the YAML file")
    if "trust_remote_code" in str(error):
        return FairnessError(
            f"{field}: '{name}' brings code of its own, which is not run here (trust_remote_code=False); take a model "
            "of a class that the library has, or serve it yourself and name it as an endpoint"
        )
    if "weights_only" in str(error):
        return FairnessError(
            f"{field}: the weights in {name} are a pickle that holds more than numbers, perhaps code, which is not "
            "run here; have them saved as safetensors by somebody who trusts them"
        )
    first = first_line(error)
    where = f" (revision {revision})" if revision else ""
    if Path(name).is_dir():
        return FairnessError(f"{field}: the model in {name} cannot be loaded: {first}; was it saved whole there?")
    return FairnessError(
        f"{field}: '{name}'{where} cannot be loaded: {first.rstrip('.')}; check the id (no folder of this name "
        "is here either), or fetch it once while the network is there"
    )


def is_path(name: str) -> bool:
    """Whether a model's name cannot be an id (`name` or `owner/name`) and is therefore a folder, existing or not."""
    return name.startswith(("/", ".", "~")) or name.count("/") > 1 or name.endswith("/") or "\\" in name
