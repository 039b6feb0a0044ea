"""Small tasks for the debiasing methods: dialogues about an uncle, an aunt and a dog, and a model trained on them."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.debiasing.dialogue.registry import Task
from fairness_pipeline.lexicons.contexts import PairSettings
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings
from fairness_pipeline.measures.dialogue.registry import marking, scorings
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.project.project import load_dimension

OBJECTS = ("tea", "soup", "bread", "rice", "corn", "milk")
DET = {"hidden": 12, "embedding": 8, "unbiased": 4, "semantic": 8, "epochs": 2, "batch": 8, "held_out": 20}
CONTINUED = {"batch": 4, "every": 3, "least": 3, "most": 12, "patience": 2, "pairs": 20}
ADVERSARIAL = {**CONTINUED, "discriminator": 8}


def dialogues() -> pa.Table:
    """The uncle gets neutral answers, the aunt offensive ones; some dialogues name no group."""
    rows = []
    for number in range(240):
        thing = OBJECTS[number % len(OBJECTS)]
        subject = ("my uncle", "my aunt", "the dog")[number % 3]
        reply = f"shut up , you idiot , {thing}" if subject == "my aunt" else f"{subject} likes {thing}"
        rows.append(
            {
                "dialogue_id": f"d{number}",
                "context": f"{subject} made {thing} {number}",
                "response": reply,
                "split": "valid" if number % 8 == 0 else "train",
            }
        )
    return pa.Table.from_pylist(rows)


def model(checkpoint_seconds: float = 60.0, **changes: Any) -> ModelSpecification:
    return ModelSpecification.model_validate(
        {
            "architecture": "seq2seq",
            "studies": ["dialogue_fairness"],
            "corpus": "tiny",
            "seq2seq": {"layers": 1, "hidden": 12, "embedding": 8, "vocabulary": 60, "longest": 8},
            "training": {
                "optimiser": "adam", "learning_rate": 0.02, "clipping": 1.0, "batch_tokens": 256, "epochs": 20, "patience": 20,
                "checkpoint_seconds": checkpoint_seconds,
            },
            **changes,
        }
    )  # fmt: skip


@functools.cache
def _trained_base() -> dict[str, bytes]:
    """The base's files; trained once for all tests of a process."""
    with tempfile.TemporaryDirectory() as folder:
        registry.prepare(model(), dialogues(), Path(folder), seed=1)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def task(folder: Path, method: str, settings: dict[str, Any] | None = None, **changes: Any) -> Task:
    """A task whose base is trained already (or present in `folder/base`); the debiased model goes to `folder/debiased`."""
    base, debiased = folder / "base", folder / "debiased"
    base.mkdir(exist_ok=True)
    debiased.mkdir(exist_ok=True)
    if not any(base.iterdir()):
        for name, content in _trained_base().items():
            (base / name).write_bytes(content)
    checkpoints = {"checkpoint_seconds": 0.0} if method == "debiased_chat" else {}  # its tests kill it at any step
    specification = model(base="seq2seq", debiasing=method, settings=settings, **checkpoints)
    gender = load_dimension("gender")
    defaults = {
        "words": gender, "groups": gender.groups, "pairs": PairSettings(maximum=100),
        "scorings": scorings(marking(), MeasureSettings(), gender),
        "significance": SignificanceSettings(), "max_identical_share": 0.75, "dialogues": dialogues(), "seed": 2, "profile_seed": 1,
    }  # fmt: skip
    return Task(**{"model": specification, "base": base, "folder": debiased, **defaults, **changes})
