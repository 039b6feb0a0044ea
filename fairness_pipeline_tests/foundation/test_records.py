"""Files of records that are not what they should be."""

from pathlib import Path

import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.records import read_records


@pytest.mark.parametrize("name", ["nested.json", "nested.jsonl"])
def test_nesting_without_end_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('[{"text": ' + "[" * 100_000 + "]" * 100_000 + "}]" if name.endswith("json") else "[" * 100_000)
    with pytest.raises(FairnessError, match=f"{name}.*(nested too deeply|not valid JSON)"):
        list(read_records(path))
