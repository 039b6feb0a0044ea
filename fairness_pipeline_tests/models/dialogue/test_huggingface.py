"""Hugging Face models of every kind, from small folders, against `generate` with one prompt at a time."""

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.folders import model_folder
from fairness_pipeline_tests.models.tiny_models import causal_lm, encoder_decoder, tokenizer

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the library
NONE = pa.table({"context": [], "response": [], "split": []})
CONTEXTS = ["what is red", "the man", "what is the blue woman it is", "is", "green the red"]


def specification(
    name: str, architecture: str = "causal_lm", decoding: object = None, **options: object
) -> ModelSpecification:
    return ModelSpecification(
        architecture=architecture,
        studies=("dialogue_fairness",),
        corpus="c",
        huggingface={"name": name, **options},
        decoding={"max_tokens": 6, "batch": 3, **(decoding or {})},
        device="cpu",
    )


def answers(spec: ModelSpecification, folder: Path, contexts: list[str] = CONTEXTS, seed: int = 1) -> list[str]:
    folder.mkdir(exist_ok=True)
    registry.prepare(spec, NONE, folder, seed=1)
    responder = registry.responder(spec, folder, folder, seed)
    return responder(pa.table({"text": contexts}))["response"].to_pylist()


@pytest.mark.parametrize("architecture", ["causal_lm", "encoder_decoder"])
def test_batches_answer_as_one_prompt_at_a_time_does(tmp_path: Path, architecture: str) -> None:
    import torch
    import transformers

    causal = architecture == "causal_lm"
    name = (causal_lm if causal else encoder_decoder)(tmp_path / "model")
    loaded = transformers.AutoTokenizer.from_pretrained(name)
    model_class = transformers.AutoModelForCausalLM if causal else transformers.AutoModelForSeq2SeqLM
    model = model_class.from_pretrained(name).eval()
    expected = []
    for context in CONTEXTS:
        encoded = loaded(f"user : {context} bot :", return_tensors="pt")
        with torch.inference_mode():
            tokens = model.generate(
                input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"], do_sample=False,
                max_new_tokens=6, min_new_tokens=1, pad_token_id=1,
            )[0]  # fmt: skip
        expected.append(
            loaded.decode(tokens[encoded["input_ids"].shape[1] if causal else 0 :], skip_special_tokens=True)
        )
    spec = specification(name, architecture, prompt="user : {context} bot :")
    batched = answers(spec, tmp_path / "work")
    assert batched == [text.strip() for text in expected]
    assert len(set(batched)) > 1


def test_chat_templates_and_system_prompts(tmp_path: Path) -> None:
    template = "{% for m in messages %}{{ m.role }} : {{ m.content }} {% endfor %}{% if add_generation_prompt %}bot :{% endif %}"
    name = causal_lm(tmp_path / "model", template=template)
    chat = answers(specification(name, chat=True, system="it is"), tmp_path / "chat", ["the man"])
    plain = answers(
        specification(name, prompt="system : it is user : {context} bot :"), tmp_path / "plain", ["the man"]
    )
    assert chat == plain
    without = causal_lm(tmp_path / "without")
    with pytest.raises(FairnessError, match=r"huggingface.chat: the tokenizer of '.*without' has no chat template"):
        answers(specification(without, chat=True), tmp_path / "x")
    with pytest.raises(ValueError, match="'system' needs 'chat: true'"):
        specification(name, system="x")


def test_sampling_is_seeded(tmp_path: Path) -> None:
    name = causal_lm(tmp_path / "model")
    spec = specification(name, decoding={"temperature": 1.5})
    first = answers(spec, tmp_path / "work")
    assert answers(spec, tmp_path / "work") == first
    assert answers(spec, tmp_path / "work", seed=2) != first


def test_stops_and_long_prompts(tmp_path: Path) -> None:
    name = causal_lm(tmp_path / "model")
    whole = answers(specification(name), tmp_path / "work", ["what is red"])[0]
    word = whole.split()[2]
    cut = answers(specification(name, decoding={"stop": [word]}), tmp_path / "work", ["what is red"])[0]
    assert cut == whole[: whole.find(word)].strip()
    long = "the man " * 40  # 26 of 32 positions are left; the end of the prompt is kept
    assert answers(specification(name), tmp_path / "work", [long]) == answers(
        specification(name), tmp_path / "work", ["the man " * 13]
    )
    with pytest.raises(FairnessError, match="decoding.max_tokens: the model has 32 positions"):
        answers(specification(name, decoding={"max_tokens": 32}), tmp_path / "work")


def test_a_tokenizer_without_padding_token(tmp_path: Path) -> None:
    padded = answers(specification(causal_lm(tmp_path / "padded")), tmp_path / "work")
    assert answers(specification(causal_lm(tmp_path / "end", pad=False)), tmp_path / "work") == padded
    with pytest.raises(FairnessError, match="has neither a padding nor an end token"):
        answers(specification(causal_lm(tmp_path / "neither", pad=False, end=False)), tmp_path / "work")


def test_models_that_cannot_be_loaded_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    name = causal_lm(tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    content = weights.read_bytes()
    weights.unlink()
    with pytest.raises(FairnessError, match=r"the folder .*model holds no weights .*save_pretrained"):
        answers(specification(name), tmp_path / "work")
    weights.write_bytes(content[:1000])
    with pytest.raises(FairnessError, match="the model in .*model cannot be loaded"):
        answers(specification(name), tmp_path / "work")
    with pytest.raises(FairnessError, match="'no/such-model' cannot be loaded: .*; check the id "):
        answers(specification("no/such-model"), tmp_path / "work")
    with pytest.raises(FairnessError, match="huggingface.name: there is no folder .*nowhere; check the path"):
        answers(specification(str(tmp_path / "nowhere")), tmp_path / "work")
    with pytest.raises(FairnessError, match="cannot be loaded"):
        answers(specification(encoder_decoder(tmp_path / "t5")), tmp_path / "work")  # not a causal LM


def test_code_that_a_model_brings_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not run even where the library would ask at a terminal, and someone types "y"."""
    name, flag = causal_lm(tmp_path / "model"), tmp_path / "ran"
    code = (
        f"from transformers import PretrainedConfig\nopen({str(flag)!r}, 'w')\nclass Own(PretrainedConfig):\n    pass\n"
    )
    (tmp_path / "model/own.py").write_text(code)
    path = tmp_path / "model/config.json"
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "model_type": "own", "auto_map": {"AutoConfig": "own.Own"}})
    )
    monkeypatch.setattr("builtins.input", lambda *arguments: "y")
    with pytest.raises(FairnessError, match="brings code of its own, which is not run here"):
        answers(specification(name), tmp_path / "work")
    assert not flag.exists()


def test_weights_that_are_a_pickle_with_code_are_refused(tmp_path: Path) -> None:
    import torch

    class Code:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (tmp_path / "ran",)

    name = causal_lm(tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    torch.save({"weight": Code()}, tmp_path / "model" / "pytorch_model.bin")
    with pytest.raises(FairnessError, match=r"a pickle that holds more than numbers, .* as safetensors"):
        answers(specification(name), tmp_path / "work")
    assert not (tmp_path / "ran").exists()


def test_a_folder_without_tokenizer_is_refused(tmp_path: Path) -> None:
    """The library would make an empty tokenizer, and fail much later."""
    name = causal_lm(tmp_path / "model")
    for file in (tmp_path / "model").glob("tokenizer*"):
        file.unlink()
    with pytest.raises(FairnessError, match=r"huggingface.name: '.*model' has no tokenizer"):
        answers(specification(name), tmp_path / "work")


def test_missing_weights_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    name = causal_lm(tmp_path / "model")
    weights = load_file(tmp_path / "model" / "model.safetensors")
    weights.pop("transformer.h.1.attn.c_attn.weight")
    save_file(weights, tmp_path / "model" / "model.safetensors", {"format": "pt"})
    with pytest.raises(FairnessError, match=r"lacks 1 of the weights .*: they would be initialised at random"):
        answers(specification(name), tmp_path / "work")


def test_a_folders_version_follows_its_content(tmp_path: Path) -> None:
    name = causal_lm(tmp_path / "model")
    before = model_folder(name)
    tokenizer(pad=False).save_pretrained(name)
    assert model_folder(name) != before
    assert model_folder("some/id") is None
    assert specification("some/id").may_change
    assert not specification("some/id", revision="abc").may_change
    assert not specification(name).may_change


def test_a_relative_folder_is_relative_to_the_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = causal_lm(tmp_path / "model")
    assert specification("model").located(tmp_path).huggingface.name == name
    monkeypatch.chdir(tmp_path)
    assert specification("model").may_change  # an id, whatever the current folder holds
    assert model_folder("model") is None


def test_of_the_models_own_decoding_only_its_tokens_count(tmp_path: Path) -> None:
    name = causal_lm(tmp_path / "model")
    plain = answers(specification(name), tmp_path / "work")
    path = tmp_path / "model" / "generation_config.json"
    decoding = json.loads(path.read_text()) | {
        "repetition_penalty": 9.0,
        "num_beams": 3,
        "max_length": 3,
        "do_sample": True,
    }
    path.write_text(json.dumps(decoding))
    assert answers(specification(name), tmp_path / "work") == plain


def test_the_responder_is_picklable_and_a_missing_gpu_is_an_error(tmp_path: Path) -> None:
    import torch

    spec = specification(causal_lm(tmp_path / "model"))
    registry.prepare(spec, NONE, tmp_path, seed=1)
    assert json.loads((tmp_path / "source.json").read_text())["revision"] is None
    responder = registry.responder(spec, tmp_path, tmp_path, 1)
    contexts = pa.table({"text": CONTEXTS})
    expected = responder(contexts)
    assert pickle.loads(pickle.dumps(responder))(contexts).equals(expected)
    if not torch.cuda.is_available():
        with pytest.raises(FairnessError, match="device: 'cuda' is asked for, but torch sees no GPU"):
            answers(spec.model_copy(update={"device": "cuda"}), tmp_path / "work")
