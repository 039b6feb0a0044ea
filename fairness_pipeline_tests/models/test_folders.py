"""A model's folder: what is hashed is what is loaded."""

import json
import shutil
from pathlib import Path

import pytest
import transformers
from safetensors import safe_open

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.folders import model_folder
from fairness_pipeline.models.pretrained import load_tokenizer
from fairness_pipeline_tests.models.language.tiny import trained


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    trained(folder)
    return folder


@pytest.fixture
def model(saved: Path, tmp_path: Path) -> Path:
    """A copy of its own, beside a folder `outside` with the same weights."""
    shutil.copytree(saved, tmp_path / "model")
    (tmp_path / "outside").mkdir()
    shutil.copy(tmp_path / "model" / "model.safetensors", tmp_path / "outside" / "part.safetensors")
    return tmp_path / "model"


def index(model: Path, shard: str) -> Path:
    """Writes an index by which all weights are in one shard, in place of the weights."""
    weights = model / "model.safetensors"
    with safe_open(weights, "pt") as file:
        names = list(file.keys())
    weights.unlink()
    path = model / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, shard)}))
    return path


def refused(model: Path, problem: str) -> None:
    """Neither hashed nor loaded."""
    for look in (lambda: model_folder(str(model)), lambda: load_tokenizer(str(model), None, "huggingface.name")):
        with pytest.raises(FairnessError, match=problem):
            look()


@pytest.mark.parametrize("absolute", [False, True])
def test_a_shard_outside_of_the_folder(model: Path, absolute: bool) -> None:
    """The library loads it, and its bytes are in no hash."""
    shard = str(model.parent / "outside" / "part.safetensors") if absolute else "../outside/part.safetensors"
    index(model, shard)
    assert transformers.AutoModelForCausalLM.from_pretrained(str(model)).num_parameters()
    refused(model, rf"model.safetensors.index.json: names '{shard}', outside of the model's folder")


def test_a_shard_that_another_index_names(model: Path) -> None:
    """`config.json` can name an index in a folder within."""
    path = index(model, "../outside/part.safetensors")
    (model / "sub").mkdir()
    path.rename(model / "sub" / "x.safetensors.index.json")
    refused(model, "sub/x.safetensors.index.json: names '../outside/part.safetensors', outside")


@pytest.mark.parametrize("content", ["[", "[]", '{"weight_map": {"a": "pytorch_model-00001-of-00001.bin"}}'])
def test_an_index_that_is_left_over_is_no_reason_to_refuse(model: Path, content: str) -> None:
    """As a download of safetensors alone leaves it."""
    (model / "pytorch_model.bin.index.json").write_text(content)
    assert model_folder(str(model))
    load_tokenizer(str(model), None, "huggingface.name")


def test_a_folder_in_place_of_an_id(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    with pytest.raises(
        FairnessError, match=r"huggingface.name: 'model' is an id, and also a folder in .*, which would"
    ):
        load_tokenizer("model", "0" * 40, "huggingface.name")


def test_a_name_that_would_read_as_two_files(model: Path) -> None:
    (model / "a 0\nb").write_text("")
    refused(model, "a file's name with a line end; rename it")


def test_a_shard_in_a_folder_that_is_a_link(model: Path) -> None:
    index(model, "parts/part.safetensors")
    (model / "parts").symlink_to(model.parent / "outside")
    refused(model, "parts: a link to another folder, whose files are in no hash")


def test_a_file_that_is_a_link_is_hashed_as_what_it_leads_to(model: Path) -> None:
    index(model, "part.safetensors")
    outside = model.parent / "outside" / "part.safetensors"
    (model / "part.safetensors").symlink_to(outside)
    before = model_folder(str(model))
    load_tokenizer(str(model), None, "huggingface.name")
    content = bytearray(outside.read_bytes())
    content[-1] ^= 1
    outside.write_bytes(content)
    assert model_folder(str(model)) != before


def test_a_shard_in_a_folder_of_its_own_is_hashed(model: Path) -> None:
    index(model, "parts/part.safetensors")
    shutil.move(model.parent / "outside", model / "parts")
    before = model_folder(str(model))
    (model / "parts" / "part.safetensors").write_bytes(b"others")
    assert model_folder(str(model)) != before


def test_an_adapter_is_not_passed_over(model: Path) -> None:
    (model / "adapter_config.json").write_text('{"base_model_name_or_path": "elsewhere", "peft_type": "LORA"}')
    with pytest.raises(FairnessError, match=r"huggingface.name: '.*' has an adapter \(adapter_config.json\), and"):
        load_tokenizer(str(model), None, "huggingface.name")
