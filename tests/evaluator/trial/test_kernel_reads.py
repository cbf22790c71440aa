"""Bytes that kernels read come from somewhere that was seen; work of the host is found in other ways."""

from __future__ import annotations

import pytest

from cutegen_nb.core.evaluation import Judged, Verdict

pytestmark = pytest.mark.slow

FORWARD = "        self.compiled(*flat, x.numel())\n        return y\n"
UNSEEN = {
    "modes off": "with off(): given = torch.relu(x)",
    "another thread": "with Pool(1) as pool: given = pool.submit(torch.relu, x).result()",
    "through a pointer": "seen = (ctypes.c_float * x.numel()).from_address(x.data_ptr()); "
    "given = torch.from_numpy(np.maximum(np.frombuffer(seen, np.float32).reshape(x.shape), 0.0))",
}
"""Lines that make `given` from the inputs where nothing sees them."""
ON_HOST = {
    "numpy": "given = torch.from_numpy(np.maximum(x.cpu().numpy(), 0.0))",
    "in place by numpy": "given = x.clone(); np.maximum(given.numpy(), 0.0, out=given.numpy())",
    "into empty memory": "given = torch.empty_like(x); np.maximum(x.cpu().numpy(), 0.0, out=given.numpy())",
    "cloned afterwards": "given = torch.from_numpy(np.maximum(x.cpu().numpy(), 0.0)).clone()",
    "lists": "given = torch.tensor([[max(one, 0.0) for one in row] for row in x.tolist()])",
}
"""Lines that make it on the host with functions that every program has."""
HONEST = {
    "the input": "given = x",
    "a contiguous copy": "given = x.t().contiguous().t().contiguous()",
    "filled memory": "given = torch.zeros_like(x); given.copy_(x)",
    "a table made once": "self.__dict__.setdefault('table', torch.from_numpy(np.arange(99999))); given = x",
    "a small table each time": "table = torch.tensor([1.0, 2.0, 3.0]); given = x",
}


def reading(judge, line):
    """A right kernel that reads `given`, made by this line of its forward."""
    source = judge.source("relu").replace(
        "import torch\n",
        "import ctypes\nimport numpy as np\nimport torch\nfrom concurrent.futures import ThreadPoolExecutor as Pool\n"
        "from torch.utils._python_dispatch import _disable_current_modes as off\n",
        1,
    )
    body = "".join(f"        {part.strip()}\n" for part in line.split("; "))
    return source.replace(
        "        y = torch.empty_like(x)\n", f"{body}        y = torch.empty_like(x)\n"
    ).replace("for t in (x, y)", "for t in (given, y)")


@pytest.mark.first(1)
@pytest.mark.parametrize("how", UNSEEN)
def test_an_answer_computed_unseen_is_found_by_its_reading(judge, how):
    evaluation = judge("relu", reading(judge, UNSEEN[how]))
    assert evaluation.outcome == Judged(verdict=Verdict.CHEATED), evaluation.summary
    assert evaluation.findings[0].kind == "read-from-host", evaluation.summary
    (exhibit,) = evaluation.exhibits
    assert "bytes" in exhibit.statement
    assert exhibit.addresses
    assert exhibit.inputs


@pytest.mark.long
@pytest.mark.parametrize("how", ON_HOST)
def test_an_answer_computed_on_the_host_is_not_own_work(judge, how):
    evaluation = judge("relu", reading(judge, ON_HOST[how]))
    assert evaluation.outcome == Judged(verdict=Verdict.NOT_OWN_WORK), evaluation.summary
    assert evaluation.findings[0].kind == "host-work", evaluation.summary
    assert "the host read" in evaluation.summary


def test_numpy_is_refused_an_input_as_on_a_gpu(judge):
    evaluation = judge("relu", reading(judge, "given = torch.from_numpy(x.numpy())"))
    assert evaluation.outcome == Judged(verdict=Verdict.CRASHED), evaluation.summary
    assert "can't convert cuda:0 device type tensor to numpy" in evaluation.summary


@pytest.mark.first(1)
@pytest.mark.parametrize("how", HONEST)
def test_what_was_seen_or_made_once_is_explained(judge, how):
    evaluation = judge("relu", reading(judge, HONEST[how]))
    assert evaluation.passed, evaluation.summary
