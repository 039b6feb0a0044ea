"""A model's folder: every file that is loaded is hashed."""

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
    """A copy of the model, next to a folder `outside` with the same weights."""
    shutil.copytree(saved, tmp_path / "model")
    (tmp_path / "outside").mkdir()
    shutil.copy(tmp_path / "model" / "model.safetensors", tmp_path / "outside" / "part.safetensors")
    return tmp_path / "model"


def index(model: Path, shard: str) -> Path:
    """Replaces the weights by an index that names one shard for all of them."""
    weights = model / "model.safetensors"
    with safe_open(weights, "pt") as file:
        names = list(file.keys())
    weights.unlink()
    path = model / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, shard)}))
    return path


def refused(model: Path, problem: str) -> None:
    """Checks that the model is neither hashed nor loaded."""
    for use in (lambda: model_folder(str(model)), lambda: load_tokenizer(str(model), None, "huggingface.name")):
        with pytest.raises(FairnessError, match=problem):
            use()


@pytest.mark.parametrize("absolute", [False, True])
def test_a_shard_outside_of_the_folder(model: Path, absolute: bool) -> None:
    """The library would load the shard, and its bytes would be in no hash."""
    shard = str(model.parent / "outside" / "part.safetensors") if absolute else "../outside/part.safetensors"
    index(model, shard)
    assert transformers.AutoModelForCausalLM.from_pretrained(str(model)).num_parameters()
    refused(model, rf"model.safetensors.index.json: names '{shard}', outside of the model's folder")


def test_a_shard_that_another_index_names(model: Path) -> None:
    """`config.json` can name an index in a subfolder."""
    path = index(model, "../outside/part.safetensors")
    (model / "sub").mkdir()
    path.rename(model / "sub" / "x.safetensors.index.json")
    refused(model, "sub/x.safetensors.index.json: names '../outside/part.safetensors', outside")


@pytest.mark.parametrize("content", ["[", "[]", '{"weight_map": {"a": "pytorch_model-00001-of-00001.bin"}}'])
def test_an_unused_index_is_ignored(model: Path, content: str) -> None:
    """A download of only the safetensors leaves such an index."""
    (model / "pytorch_model.bin.index.json").write_text(content)
    assert model_folder(str(model))
    load_tokenizer(str(model), None, "huggingface.name")


def test_a_folder_in_place_of_an_id(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    with pytest.raises(
        FairnessError, match=r"huggingface.name: 'model' is an id, and also a folder in .*, which would"
    ):
        load_tokenizer("model", "0" * 40, "huggingface.name")


def test_a_file_name_that_would_read_as_two_files(model: Path) -> None:
    (model / "a 0\nb").write_text("")
    refused(model, "a file's name with a line end; rename it")


def test_a_shard_in_a_folder_that_is_a_link(model: Path) -> None:
    index(model, "parts/part.safetensors")
    (model / "parts").symlink_to(model.parent / "outside")
    refused(model, "parts: a link to another folder, whose files are not hashed")


def test_a_linked_file_is_hashed_by_its_target(model: Path) -> None:
    index(model, "part.safetensors")
    outside = model.parent / "outside" / "part.safetensors"
    (model / "part.safetensors").symlink_to(outside)
    before = model_folder(str(model))
    load_tokenizer(str(model), None, "huggingface.name")
    content = bytearray(outside.read_bytes())
    content[-1] ^= 1
    outside.write_bytes(content)
    assert model_folder(str(model)) != before


def test_a_shard_in_a_subfolder_is_hashed(model: Path) -> None:
    index(model, "parts/part.safetensors")
    shutil.move(model.parent / "outside", model / "parts")
    before = model_folder(str(model))
    (model / "parts" / "part.safetensors").write_bytes(b"others")
    assert model_folder(str(model)) != before


def test_an_adapter_is_refused(model: Path) -> None:
    (model / "adapter_config.json").write_text('{"base_model_name_or_path": "elsewhere", "peft_type": "LORA"}')
    with pytest.raises(FairnessError, match=r"huggingface.name: '.*' has an adapter \(adapter_config.json\), and"):
        load_tokenizer(str(model), None, "huggingface.name")
