"""The example notebook runs in a kernel and shows its results once."""

from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="needs the extra docs: nbclient and ipykernel")
nbformat = pytest.importorskip("nbformat", reason="needs the extra docs: nbclient and ipykernel")

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


def test_stored_notebook_has_no_outputs() -> None:
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


def test_notebook_shows_each_result_once(tmp_path: Path) -> None:
    book = nbformat.read(NOTEBOOK, as_version=4)
    book.cells.append(nbformat.v4.new_code_cell("print(result)"))
    nbclient.NotebookClient(
        book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    audit, metric, verdict, text = (cell.outputs for cell in book.cells if "outputs" in cell)
    progress, shown = audit
    assert progress.name == "stderr"
    assert progress.text.count("\n") == 1
    assert shown.data["text/html"].count("<table>") == 1
    assert [output.data["text/plain"][0] for output in metric] == ["{"]
    assert [
        output.data["text/html"].count("<table>") for output in verdict if "data" in output
    ] == [1]
    assert [output.name for output in text] == ["stdout"]
    assert text[0].text.startswith("An answer wins")
    assert "Use average" in text[0].text
