"""The writer for element-wise graphs, reductions, softmax, norms and losses."""

from __future__ import annotations

from cutegen_nb.authors.offline.emit_elementwise import emit_elementwise
from cutegen_nb.authors.offline.kernel_text import KernelText
from cutegen_nb.authors.offline.emit_joining import emit_joining
from cutegen_nb.authors.offline.emit_rows import RowKernel
from cutegen_nb.authors.offline.emit_strided import StridedVectors
from cutegen_nb.authors.offline.module import module_text, temporary_dtypes
from cutegen_nb.authors.offline.plan import Kernel, Plan, plan
from cutegen_nb.authors.offline.reading import read
from cutegen_nb.authors.offline.rows_text import is_strided, row_nest
from cutegen_nb.authors.offline.state import constructor
from cutegen_nb.authors.offline.strategies import ladder
from cutegen_nb.authors.offline.variants import Variant, fold
from cutegen_nb.authors.offline.writers import Written
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.strategy import Strategy


class FusedLoopsWriter:
    """Everything that is loops over elements and rows."""

    def accepts(self, facts: ProblemFacts) -> bool:  # noqa: ARG002 - it is the last one asked
        """Always: what it cannot write it declines."""
        return True

    def menu(self, facts: ProblemFacts) -> tuple[Strategy, ...]:
        """Strategies for the graph's dominant kernel. Raises Declined."""
        return ladder(plan(read(facts))).strategies

    def write(self, problem: Problem, facts: ProblemFacts, applied: tuple[str, ...]) -> Written:
        """Write the kernels with the strategies carried out. Raises Declined."""
        fused = plan(read(facts))
        steps = ladder(fused)
        variant = fold(steps.start, applied)
        chosen = plan(read(facts), fuse=False, merge=variant.one_pass) if variant.split else fused
        return Written(source=_source(problem, chosen, variant), rationale=steps.rationale(applied, variant))


def _source(problem: Problem, chosen: Plan, variant: Variant) -> str:
    texts = [
        (kernel, _emitted(kernel, chosen, variant, _kernel_name(chosen, position)))
        for position, kernel in enumerate(chosen.kernels)
    ]
    title = f"{problem.name} in CuTe DSL."
    return module_text(chosen, texts, title, constructor(problem))


def _kernel_name(chosen: Plan, position: int) -> str:
    """``elementwise`` or ``reduce_rows``, numbered where there are several of a kind."""
    kinds = ["reduce_rows" if kernel.reductions else "elementwise" for kernel in chosen.kernels]
    kind = kinds[position]
    return kind if kinds.count(kind) == 1 else f"{kind}_{kinds[: position + 1].count(kind)}"


def _emitted(kernel: Kernel, chosen: Plan, variant: Variant, name: str) -> tuple[KernelText, ...]:
    dtypes = temporary_dtypes(chosen)
    if not kernel.reductions:
        return (emit_elementwise(kernel, chosen, variant, name, dtypes),)
    strided = is_strided(kernel, row_nest(kernel))
    rows = RowKernel(kernel, chosen, variant, name, dtypes, partial=variant.split, strided=strided)
    vectors = strided and variant.vectors and not rows.cached
    text = StridedVectors(rows).text() if vectors else rows.text()
    return (text, emit_joining(rows, f"{name}_join")) if variant.split else (text,)
