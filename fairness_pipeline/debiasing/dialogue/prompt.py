"""A plain prompt: instructs the model to treat everybody alike (chat endpoints, models that follow instructions)."""

from pathlib import Path

from fairness_pipeline.debiasing.dialogue.settings import Prompt
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.workspace.distinct import Scorer


def responder(specification: ModelSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    """Answers contexts as the base does, after the instruction."""
    return registry.responder(instructed(specification), folder, work, seed)


def instructed(specification: ModelSpecification) -> ModelSpecification:
    """The model's file with the instruction in its system prompt, or before its prompt where it takes none."""
    instruction = Prompt.model_validate(specification.settings or {}).instruction
    section = "endpoint" if specification.endpoint else "huggingface"
    source = specification.endpoint or specification.huggingface
    assert source is not None
    if specification.endpoint or getattr(source, "chat", False):
        changes = {"system": "\n\n".join(filter(None, [source.system, instruction]))}
    else:
        changes = {"prompt": f"{instruction}\n\n{source.prompt}"}
    return specification.model_copy(update={section: source.model_copy(update=changes)})
