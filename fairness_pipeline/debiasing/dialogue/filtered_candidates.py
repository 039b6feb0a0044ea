"""A retrieval model without biased candidates, as remarked in Liu et al. 2020, section 4.

"There exists a trivial but effective way to eliminate the biases by simply removing all the biased candidate responses
from the response pool." Nothing is trained: the base's ranker chooses among what is left.
"""

import shutil
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from safetensors.torch import save_file

from fairness_pipeline.debiasing.dialogue.biased_text import BiasScorer
from fairness_pipeline.debiasing.dialogue.registry import Task
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.parquet import read_parquet, write_parquet
from fairness_pipeline.models.checkpoints import load_weights
from fairness_pipeline.models.dialogue.retrieval import CANDIDATES, VECTORS
from fairness_pipeline.models.training import Trainer
from fairness_pipeline.models.vocabulary import VOCABULARY


def debias(task: Task) -> dict[str, Any]:
    """Leaves out the base's candidates that are offensive, clearly positive or negative, or hold attribute words.

    Raises:
        FairnessError: no candidate is left.
    """
    candidates = read_parquet(task.base / CANDIDATES)
    vectors = load_weights(task.base / VECTORS)["vectors"]
    scorer = BiasScorer(task.scorings)
    biased = pa.array(scorer.biased(candidates["response"].combine_chunks(), task.progress))
    kept = pc.indices_nonzero(pc.invert(biased))
    if not len(kept):
        raise FairnessError(f"all {candidates.num_rows:,} candidates are biased by these measures; none is left")
    with replacing(task.folder / CANDIDATES) as path:
        write_parquet(candidates.take(kept), path)
    with replacing(task.folder / VECTORS) as path:
        save_file({"vectors": vectors[kept.to_numpy().astype("int64")].contiguous()}, path)
    for name in (VOCABULARY, Trainer.WEIGHTS):
        with replacing(task.folder / name) as path:
            shutil.copyfile(task.base / name, path)
    return {"candidates": len(kept), "candidates_left_out": candidates.num_rows - len(kept)}
