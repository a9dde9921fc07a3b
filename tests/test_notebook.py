"""The page about Python is a notebook: its blocks run one after the other, and in a real kernel."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs/python.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.mark.slow
def test_the_blocks_of_the_page_run(tmp_path):
    assert len(BLOCKS) > 8
    namespace = {"__name__": "notebook"}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"block {number}", "exec"), namespace)
    assert namespace["run"].status == "completed" and namespace["report"].exists() and namespace["table"].exists()
    assert "mock:echo" in namespace["named"].to_yaml()


def executed(folder):
    """The page as a notebook, after a real kernel has run it."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [nbformat.v4.new_code_cell(block.rstrip("\n")) for block in [*BLOCKS, "await ft.arun(suite)"]]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "p"}})
    nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


@pytest.mark.slow
def test_a_notebook_in_a_real_kernel(tmp_path):
    notebook = executed(tmp_path)
    kinds = [output.output_type for cell in notebook.cells for output in cell.outputs]
    assert "error" not in kinds
    results = [o.data for cell in notebook.cells for o in cell.outputs if o.output_type == "execute_result"]
    tables = [data for data in results if "<table" in data.get("text/html", "")]
    drawn = [data["text/html"] for data in tables if "<svg" in data["text/html"]]
    assert len(tables) >= 6 and len(drawn) >= 2  # `run`, its async twin, and comparisons
    assert all("<style>" in html and 'class="fairtrial-charts"' in html for html in drawn)
    assert results[0]["text/plain"] == "<Suite capitals: 2 arms, 6 cases>"
    progress = [o for cell in notebook.cells for o in cell.outputs if o.output_type == "display_data"]
    assert all(o.data["text/plain"] == "" for o in progress)  # the line of progress is gone when a run has ended
