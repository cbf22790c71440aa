"""Writer of whole problems: kernels of operators and products, and kernels of loops around them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cutegen_nb.analysis.problem.workload import count_flops
from cutegen_nb.authors.offline.constructor import constructor
from cutegen_nb.authors.offline.fused.module import FunctionText, module_text
from cutegen_nb.authors.offline.fused.plan import plan
from cutegen_nb.authors.offline.fused.texts import menu as loops_menu
from cutegen_nb.authors.offline.fused.texts import sequence, texts
from cutegen_nb.authors.offline.fused.variants import KNOWN, fold
from cutegen_nb.authors.offline.graph.ir import GraphProgram, elements
from cutegen_nb.authors.offline.operators.algebra import ALGEBRA, ALGEBRA_STRATEGY, with_sums_first
from cutegen_nb.authors.offline.operators.cut import CutProblem, cut
from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorText, OperatorWriter
from cutegen_nb.authors.offline.operators.product import ProductOperator
from cutegen_nb.authors.offline.operators.recurrence.layers import with_layers_apart
from cutegen_nb.authors.offline.operators.registry import OPERATOR_WRITERS
from cutegen_nb.authors.offline.operators.tails import FUSE_TAIL, FUSE_TAIL_STRATEGY, with_tails
from cutegen_nb.authors.offline.operators.windows.strategies import WINDOW_STRATEGIES
from cutegen_nb.authors.offline.writers import WrittenKernel
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import DTYPE_BYTES
from cutegen_nb.core.library import Library, library_option, library_words
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.strategy import Strategy


class OperatorsWriter:
    """Writer of graphs as a sequence of kernels: operators, products, loops over elements and rows.

    The first file computes each operator and each run of loops by a kernel of its own. The first step of each
    operator comes first, in the order of their arithmetic, then the first step of loops that reduce rows:
    these gain most. A part with little of the work, as a pooling behind a large product, waits. Then come the
    other strategies of the costliest operator and those of the others; then element-wise work moves into the
    operators' kernels, and last come the strategies of the loops that remain. Where these reduce rows and
    have more arithmetic than the operators, as a norm behind an embedding, they come first.
    """

    def __init__(self, writers: tuple[OperatorWriter, ...] = OPERATOR_WRITERS) -> None:
        self._writers = (*writers, ProductOperator())

    def accepts(self, facts: ProblemFacts, library: Library = ()) -> bool:  # noqa: ARG002 - it is the last one asked
        """Accept every graph: ``menu`` and ``write`` raise Declined for one that is not supported."""
        return True

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:
        """List the strategies that change any of the kernels, in order. Raises Declined."""
        facts = with_layers_apart(facts)
        rewritten = with_sums_first(facts)
        found = [*self._menu(facts, library)]
        if rewritten:
            found = [ALGEBRA_STRATEGY, *self._menu(rewritten, library), *found]
        first: dict[str, Strategy] = {}
        for item in found:
            first.setdefault(item.name, item)
        return tuple(first.values())

    def _menu(self, facts: ProblemFacts, library: Library) -> list[Strategy]:
        whole = self._cut(facts, library)
        fused = with_tails(whole)
        loops = list(loops_menu(fused.program))
        in_operators = sum(part.flops for part in whole.parts.values())
        loops_first = in_operators < count_flops(facts.full.graph) - in_operators and _reduces(fused.program)
        calls = whole.calls()
        first, *others = [whole.parts[name].writer.menu(call) for name, call in calls.items()] or [()]
        # What a strategy asks of a kernel is looked for in the whole file, and found there in another's: of
        # the operators, that holds for all but the costliest one.
        later = [_without_conditions(item) for menu in others for item in menu]
        tails = [] if fused is whole else [FUSE_TAIL_STRATEGY]
        if loops_first:
            return [*loops, *map(_without_conditions, first), *later, *tails]
        work = [whole.parts[name].flops + _FLOPS_A_BYTE * _bytes(call) for name, call in calls.items()]
        in_loops = _FLOPS_A_BYTE * _THREAD_A_ROW * _bytes_of_rows(fused.program)
        least = _LEAST_SHARE * (sum(work) + in_loops)
        early = [_first_step(menu) for menu, cost in zip(others, work[1:], strict=True) if cost >= least]
        steps = [*_first_step(first), *map(_without_conditions, itertools.chain(*early))]
        steps += _first_step(loops) if in_loops >= least else ()
        return [*steps, *first, *later, *tails, *loops]

    def write(self, problem: Problem, facts: ProblemFacts, applied: tuple[str, ...]) -> WrittenKernel:
        """Write the file with the strategies in `applied`. Raises Declined."""
        facts = with_layers_apart(facts)
        menu = {item.name: item for item in self.menu(facts, problem.library)}
        rewritten = with_sums_first(facts) if ALGEBRA in applied else None
        if rewritten:
            # Strategies of the large product have nothing left to work on.
            left = {ALGEBRA, *(item.name for item in self._menu(rewritten, problem.library))}
            applied = tuple(name for name in applied if name in left or name not in menu)
        whole = self._cut(rewritten or facts, problem.library)
        fused = with_tails(whole)
        steps = sequence(fused.program)
        offered = menu | {item.name: item for item in steps.strategies}
        unknown = [name for name in applied if name not in offered and name not in _EVER_OFFERED]
        if unknown:
            raise Declined(
                f"the offline author does not know the strategy {unknown[0]!r}; its menu lists what it can do"
            )
        whole = fused if FUSE_TAIL in applied else whole
        chosen, launches = texts(
            whole.program, fold(steps.start, tuple(name for name in applied if name in KNOWN))
        )
        source = module_text(
            chosen,
            launches,
            _title(problem, whole, applied),
            constructor(problem),
            _functions(whole, applied),
        )
        last = offered.get(applied[-1]) if applied else None
        return WrittenKernel(source=source, rationale=last.statement if last else steps.rationale)

    def _cut(self, facts: ProblemFacts, library: Library) -> CutProblem:
        whole = cut(facts, self._writers, library)
        if library and all(op.call and not op.call.function for op in whole.program.ops.values()):
            option = library_option(library)
            raise Declined(
                f"--library {option} leaves no part of this problem to a kernel: take the option away, or "
                "name fewer parts"
            )
        return whole


_EVER_OFFERED = KNOWN | {item.name for item in WINDOW_STRATEGIES}
"""Names that a stored session may have carried out, though this problem's menu lacks them today."""
_FLOPS_A_BYTE = 14
"""FLOPs in the time of a byte: 67 TFLOP/s of FP32 against 4.8 TB/s of memory on an H200."""
_THREAD_A_ROW = 8
"""Times longer that a byte takes where each row is one thread's, as in the first kernel of loops."""
_LEAST_SHARE = 0.02
"""Share of a problem's work from which on the first step of a part comes before the second of another."""


def _reduces(program: GraphProgram) -> bool:
    """Return whether a loop of the program reduces rows: its first kernel gives each row to one thread."""
    return any(kernel.reductions for kernel in plan(program).kernels)


def _bytes_of_rows(program: GraphProgram) -> int:
    """Bytes at the full size that loops which reduce rows read and store, each tensor once a kernel."""
    planned = plan(program)
    return sum(
        math.prod(axis.extent.full for axis in access.axes) * DTYPE_BYTES[planned.dtype(access.value)]
        for kernel in planned.kernels
        if kernel.reductions
        for access in kernel.accesses
    )


def _bytes(call: OperatorCall) -> int:
    """Bytes at the full size of the tensors that an operator takes and makes."""
    tensors = [(item.shape, item.dtype) for item in call.operands] + [(call.shape, call.dtype)]
    return sum(elements(shape).full * DTYPE_BYTES[dtype] for shape, dtype in tensors)


def _first_step(menu: Sequence[Strategy]) -> list[Strategy]:
    """Return a menu's first strategy for each set of architectures, up to one that any GPU can carry out."""
    first: dict[tuple[str, ...], Strategy] = {}
    for item in menu:
        first.setdefault(item.architectures, item)
        if not item.architectures:
            break
    return [*first.values()]


def _without_conditions(strategy: Strategy) -> Strategy:
    """Return the strategy without what has to be present or absent in the file."""
    return replace(strategy, absent=(), excludes=(), present=())


def _functions(whole: CutProblem, applied: tuple[str, ...]) -> FunctionText:
    """Text of the parts' functions, in the order of the calls in ``forward``."""
    calls: Mapping[str, OperatorCall] = whole.calls()
    names = dict.fromkeys(op.call.function for op in whole.program.ops.values() if op.call)
    found: Sequence[OperatorText] = [
        whole.parts[name].writer.write(calls[name], applied) for name in names if name
    ]
    return FunctionText(
        sources=tuple(text.source for text in found),
        constants={name: value for text in found for name, value in text.constants.items()},
        imports=tuple(line for text in found for line in text.imports),
    )


def _title(problem: Problem, whole: CutProblem, applied: tuple[str, ...]) -> str:
    """First line of the file: the policy, where PyTorch computes a part, and the strategies."""
    steps = f": {', '.join(dict.fromkeys(applied))}" if applied else ", no strategy applied yet"
    left = any(op.op == "call" and op.call and not op.call.function for op in whole.program.ops.values())
    beside = f" {library_words(problem.library)}" if left else ""
    return f"{problem.name} in CuTe DSL{beside}{steps}."
