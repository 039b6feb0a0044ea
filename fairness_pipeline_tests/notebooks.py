"""`make notebooks`: executes the documentation's notebooks and stores their outputs in them."""

from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"


def execute(path: Path) -> nbformat.NotebookNode:
    """Runs all cells of a notebook in a new kernel.

    Args:
        path: The notebook.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=120, record_timing=False, resources={"metadata": {"path": str(FOLDER)}}
    )
    return client.execute()


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        done = execute(path)
        done.metadata.pop("language_info", None)  # the Python version
        nbformat.write(done, path)
        print(path)
