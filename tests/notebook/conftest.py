from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from notebook_kernels import Kernel

# pytest's importlib mode puts no test folder on the path.
sys.path.insert(0, str(Path(__file__).parent))

# A GPU host that runs `make test-gpu` has torch, the DSL and pytest, and need have nothing of Jupyter's.
_NEEDED = ("IPython", "jupyter_client", "ipykernel", "nbmake")
collect_ignore_glob = [] if all(map(importlib.util.find_spec, _NEEDED)) else ["test_*.py"]


def _kernel(folder: Path, *, attended: bool) -> Iterator[Kernel]:
    from notebook_kernels import Kernel

    kernel = Kernel(folder, attended=attended)
    yield kernel
    kernel.close()


@pytest.fixture(scope="module")
def unattended(tmp_path_factory) -> Iterator[Kernel]:
    """As nbmake, nbconvert and papermill run a notebook: nobody can answer."""
    yield from _kernel(tmp_path_factory.mktemp("unattended"), attended=False)


@pytest.fixture(scope="module")
def attended(tmp_path_factory) -> Iterator[Kernel]:
    """As JupyterLab runs a cell: somebody can answer."""
    yield from _kernel(tmp_path_factory.mktemp("attended"), attended=True)
