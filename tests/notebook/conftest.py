from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# pytest's importlib mode puts no test folder on the path.
sys.path.insert(0, str(Path(__file__).parent))

from notebook_kernels import Kernel


@pytest.fixture(scope="module")
def unattended(tmp_path_factory) -> Iterator[Kernel]:
    """As nbmake, nbconvert and papermill run a notebook: nobody can answer."""
    kernel = Kernel(tmp_path_factory.mktemp("unattended"), attended=False)
    yield kernel
    kernel.close()


@pytest.fixture(scope="module")
def attended(tmp_path_factory) -> Iterator[Kernel]:
    """As JupyterLab runs a cell: somebody can answer."""
    kernel = Kernel(tmp_path_factory.mktemp("attended"), attended=True)
    yield kernel
    kernel.close()
