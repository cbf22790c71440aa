"""Functions that ``benchmarks/simulator.py`` runs on both sides: inputs, torch's expression, our kernel.

Ours is of `cute_kernels`, or the offline author's after some of its strategies; Triton's is of
`triton_kernels`, none for the sm_90a products.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_PROBLEM = """
import torch

def wanted({names}):
    return {forward}

def get_inputs():
    return [{inputs}]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Function at one size."""

    label: str
    inputs: tuple[str, ...]
    """Expressions of the inputs x, y, z."""
    forward: str
    """Expression of the output."""
    kernel: str = ""
    """Function of `cute_kernels`; empty if the offline author writes ours."""
    steps: tuple[str, ...] = ()
    """The offline author's strategies."""
    triton: str = ""
    """Function of `triton_kernels`; empty for none."""
    architecture: str = "sm_80"
    """Architecture that ours is compiled for."""
    repeats: int = 12
    """Measured calls."""

    @property
    def source(self) -> str:
        """The function as a problem's source."""
        names = ", ".join("xyz"[: len(self.inputs)])
        return _PROBLEM.format(names=names, forward=self.forward, inputs=", ".join(self.inputs))

    def problem(self) -> tuple[Callable[[], list[torch.Tensor]], Callable[..., torch.Tensor]]:
        """Functions that draw the inputs and compute the output with torch."""
        namespace: dict[str, object] = {}
        exec(compile(self.source, self.label, "exec"), namespace)
        return namespace["get_inputs"], namespace["wanted"]  # type: ignore[return-value]

    def ours(self) -> Callable[..., torch.Tensor]:
        """Import our kernel, written first where the offline author writes it."""
        if self.kernel:
            import cute_kernels

            return getattr(cute_kernels, self.kernel)
        from products import imported

        from cutegen_nb.authors.offline.author import WRITERS
        from cutegen_nb.core.problem import Problem, ProblemForm
        from cutegen_nb.evaluator.problem.trace import trace_facts

        problem = Problem(name="benchmark", source=self.source, form=ProblemForm.FUNCTION, function="wanted")
        facts = trace_facts(problem)
        writer = next(item for item in WRITERS if item.accepts(facts))
        path = Path(tempfile.mkdtemp()) / "kernel.py"
        path.write_text(writer.write(problem, facts, self.steps).source)
        return imported(path).ModelNew()


def _halves(*shapes: str) -> tuple[str, ...]:
    return tuple(f"torch.randn({shape}).half()" for shape in shapes)


_ROWS = ("torch.randn(1024, 4096)",)
_ATTENTION = "torch.nn.functional.scaled_dot_product_attention(x, y, z)"


def _product(m: int, n: int, k: int, **options: object) -> Case:
    label, inputs = f"fp16 product {m}×{n}×{k}", _halves(f"{m}, {k}", f"{k}, {n}")
    return Case(label=label, inputs=inputs, forward="x @ y", **options)  # type: ignore[arg-type]


CASES = {
    "relu": Case(
        label="ReLU 2^20", inputs=("torch.randn(1 << 20)",), forward="torch.relu(x)", kernel="relu",
        triton="relu",
    ),
    "softmax": Case(
        label="softmax 1024×4096", inputs=_ROWS, forward="torch.softmax(x, 1)", kernel="softmax",
        triton="softmax",
    ),
    "product": _product(512, 512, 512, kernel="product", triton="product"),
    "layer_norm": Case(
        label="layer norm 1024×4096", inputs=_ROWS, forward="torch.nn.functional.layer_norm(x, (4096,))",
        steps=("cta-per-row", "vectorise-128"), triton="layer_norm",
    ),
    "cumsum": Case(
        label="cumsum 1024×4096", inputs=_ROWS, forward="torch.cumsum(x, 1)",
        steps=("warp-scan", "cta-scan"), triton="cumsum",
    ),
    "argmax": Case(
        label="argmax 1024×4096", inputs=_ROWS, forward="torch.argmax(x, 1)",
        steps=("cta-per-row", "vectorise-128"), triton="argmax",
    ),
    "transpose": Case(
        label="transpose 2048×2048", inputs=("torch.randn(2048, 2048)",), forward="x.t().contiguous()",
        steps=("coalesced",), triton="transpose",
    ),
    "wide_product": _product(256, 1024, 512, kernel="product", triton="wide_product"),
    "attention": Case(
        label="attention head 128×64", inputs=_halves(*["1, 1, 128, 64"] * 3), forward=_ATTENTION,
        steps=("attention-tiles", "attention-pipeline"), triton="attention",
    ),
    "wgmma_256": _product(256, 256, 256, steps=("tma-wgmma",), architecture="sm_90a"),
    "wgmma_512": _product(512, 512, 512, steps=("tma-wgmma",), architecture="sm_90a", repeats=3),
    "wgmma_1024": _product(1024, 1024, 1024, steps=("tma-wgmma",), architecture="sm_90a", repeats=1),
}  # fmt: skip
"""Cases by name. The products for sm_90a go through TMA and ``wgmma``."""
