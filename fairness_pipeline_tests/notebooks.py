"""`make notebooks`: executes the notebooks of the documentation, with their outputs kept in them."""

from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"


def execute(path: Path) -> nbformat.NotebookNode:
    """Runs every cell in a kernel of its own.

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
    for own in sorted(FOLDER.glob("*.ipynb")):
        done = execute(own)
        done.metadata.pop("language_info", None)  # which Python it was
        nbformat.write(done, own)
        print(own)
