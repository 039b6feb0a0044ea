"""Counterpart data augmentation (CDA): Liu et al. 2020, section 4.1; Liu 2022, section 2.4.1.

"For each context-response pair in the original training data, we replace all the gender/race words (if exist) in it
with their counterpart and add the resulting context-response pair into the training set." Then the model is trained as
its base was.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.debiasing.dialogue.registry import Task
from fairness_pipeline.foundation.collector import collector_paused
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.models.dialogue import registry


def debias(task: Task, *, swap: bool = True) -> dict[str, Any]:
    """Trains the model on the augmented dialogues, with the base's settings; its control adds them without a swap.

    Raises:
        FairnessError: nothing is added, or what the architecture's training raises.
    """
    swapper = Swapper(
        task.words,
        pronouns=task.pairs.pronouns,
        seed=task.profile_seed,
        adapt_articles=task.pairs.articles == "adapt",
    )
    augmented = augment(task.dialogues, swapper, swap=swap)
    if augmented.num_rows == task.dialogues.num_rows:
        raise FairnessError(
            f"no training dialogue holds a listed word, so '{task.model.debiasing}' adds nothing; give it a larger "
            "corpus or commoner words"
        )
    figures = registry.prepare(task.model, augmented, task.folder, task.seed, task.progress)
    return {**figures, "added_dialogues": augmented.num_rows - task.dialogues.num_rows}


@collector_paused()
def augment(dialogues: pa.Table, swapper: Swapper, *, swap: bool = True) -> pa.Table:
    """The dialogues, and after them the counterpart of each one of the `train` split that holds a listed word.

    Context and response are swapped together, both directions at once (`he told her` becomes `she told him` where the
    list has both).

    Args:
        dialogues: Columns `dialogue_id`, `context`, `response`, `split`, and others, which are kept.
        swapper: Exchanges the words.
        swap: False adds the same dialogues unchanged.
    """
    train = dialogues.filter(pc.equal(dialogues["split"], "train"))
    keys = train["dialogue_id"].to_pylist()
    swapped: dict[str, list[str]] = {}
    for name in ("context", "response"):
        texts = train[name].combine_chunks()
        matches_by_text = swapper.find_all(texts)
        swapped[name] = [
            swapper.exchange(text, matches, "both", f"{key} {name}").text if matches else text
            for key, text, (matches, _) in zip(keys, texts.to_pylist(), matches_by_text, strict=True)
        ]
    changed = pc.or_(*(pc.not_equal(train[name], pa.array(texts, pa.string())) for name, texts in swapped.items()))
    added = train
    for name, texts in swapped.items() if swap else ():
        added = added.set_column(train.schema.get_field_index(name), name, pa.array(texts, pa.string()))
    return pa.concat_tables([dialogues, added.filter(changed).cast(dialogues.schema)])
