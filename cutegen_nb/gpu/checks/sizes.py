"""Which other sizes of a problem say most about a candidate: off alignment, one row, past its thresholds."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cutegen_nb.core.problem import Problem, Rewrite
from cutegen_nb.gpu.scaling import literals_of, shrunk

_SMALLEST_THRESHOLD = 15
_MOST_THREADS = 1024
"""Of a CTA: what a kernel compares with less is a thread's or a tile's index."""
_LARGEST_THRESHOLD = 1 << 40
_MOST_ALIGNMENT = 256
_MOST_SAME_SIDE = 2
_MOST_TIMES = 4
"""Times the elements of the judged size."""
_MOST_STRETCHED = 2
_LEAST_EXTENT = 4
"""To which another extent is made smaller to make room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The problem at another size."""

    words: str
    """What is other about it."""
    values: dict[int, int]
    """Each literal's value in the file → its value here."""
    decides: bool = False
    """Whether wrong values count: the problem's own size lies on that side."""
    nearer: bool = False
    """Whether it only lies nearer to the problem's own size; one of these is enough."""
    control: dict[int, int] | None = None
    """Values without the extent in question: wrong values count where the candidate is right with these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A literal that sets the size of an input."""

    full: int
    """Its value in the file."""
    now: int
    """Its value at the size being judged."""
    power: int = 1
    """Dimensions of the first input that it sets."""


def extents(problem: Problem, rewrites: Sequence[Rewrite], shapes: Sequence[Sequence[int]]) -> list[Extent]:
    """Literals whose present value is an extent of an input, those of the first input's dimensions first."""
    scaled = {item.full: item.scaled for item in rewrites}
    values = {value: scaled.get(value, value) for _, _, value in literals_of(problem.source)}
    found: list[Extent] = []
    for extent in (extent for shape in shapes for extent in shape):
        for full, now in values.items():
            item = Extent(full=full, now=now, power=max(1, list(shapes[0]).count(now)))
            if now == extent and item not in found:
                found.append(item)
    return found


def rewrites_for(problem: Problem, now: Sequence[Rewrite], values: dict[int, int]) -> tuple[Rewrite, ...]:
    """The problem's rewrites with each literal of `values` (by its value in the file) set anew."""
    scaled = {item.full: item.scaled for item in now} | values
    return tuple(
        Rewrite(line=line, column=column, full=value, scaled=scaled[value])
        for line, column, value in literals_of(problem.source)
        if scaled.get(value, value) != value
    )


def thresholds(source: str) -> tuple[int, ...]:
    """Integers that the source compares with or divides by, named constants of its module included.

    What ``min`` caps may be a number of CTAs, so that its multiples by small constants (threads of a CTA)
    count as well, unless a kernel asks how many there are, to go round with that stride.
    """
    tree = ast.parse(source)
    named: dict[str, int] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], _integer(statement.value, named)
            if isinstance(target, ast.Name) and value is not None:
                named[target.id] = value
    found = {
        value
        for part, in_kernel in _operands(tree, in_kernel=False)
        for value in (_integer(part, named),)
        if value is not None
        and (_MOST_THREADS if in_kernel else _SMALLEST_THRESHOLD) < value <= _LARGEST_THRESHOLD
    }
    small = {value for value in named.values() if 1 < value <= _MOST_THREADS}
    capped = {
        value * factor
        for part in (() if _strides_by_grid(tree) else _capped(tree))
        for value in (_integer(part, named),)
        if value is not None and value > _SMALLEST_THRESHOLD
        for factor in (1, *small)
    }
    return tuple(sorted(found | {value for value in capped if value <= _LARGEST_THRESHOLD}, reverse=True))


def _strides_by_grid(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "grid_dim" for node in ast.walk(tree))


def _capped(node: ast.AST) -> Iterator[ast.expr]:
    """Arguments of ``min`` outside kernels."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and _is_kernel(child):
            continue
        if isinstance(child, ast.Call) and "min" in {
            getattr(child.func, "id", ""),
            getattr(child.func, "attr", ""),
        }:
            yield from child.args
        yield from _capped(child)


def _operands(node: ast.AST, *, in_kernel: bool) -> Iterator[tuple[ast.expr, bool]]:
    """What is compared with or divided by, and whether in a kernel: there mostly threads and tiles."""
    for child in ast.iter_child_nodes(node):
        inside = in_kernel or (isinstance(child, ast.FunctionDef) and _is_kernel(child))
        if isinstance(child, ast.Compare):
            yield from ((part, inside) for part in (child.left, *child.comparators))
        if isinstance(child, ast.BinOp) and isinstance(child.op, ast.FloorDiv):
            yield child.right, inside
        yield from _operands(child, in_kernel=inside)


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == "kernel"
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
    )


def _integer(node: ast.expr, named: dict[str, int]) -> int | None:
    """The integer an expression of literals and named constants stands for."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return named.get(node.id)
    if isinstance(node, ast.BinOp):
        left, right = _integer(node.left, named), _integer(node.right, named)
        if left is None or right is None or abs(left) > _LARGEST_THRESHOLD or not 0 <= right <= 1 << 20:
            return None
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.LShift):
            return left << right if right < 64 else None  # noqa: PLR2004 - no size is longer
        if isinstance(node.op, ast.Pow):
            return left**right if right < 64 else None  # noqa: PLR2004 - no size is larger
    return None


def sizes(found: Sequence[Extent], elements: tuple[int, int], limits: Sequence[int]) -> Iterator[Size]:
    """Sizes to try, those that decide first.

    `elements` are those of the first input, at the problem's own size and now; `limits` are the thresholds
    of the candidate's source.
    """
    if not found:
        return
    yield from _nearer(found)
    yield from _stretched(found, elements[1])
    same_side: list[Size] = []
    for limit in limits:
        for item in found:
            size = _across(item, limit)
            if size is not None:
                yield from _sorted_out(size, same_side)
        size = _elements_across(found[0], elements, limit)
        if size is not None:
            yield from _sorted_out(size, same_side)
    largest = max(found, key=lambda item: item.now)
    for new in (largest.now - 1, largest.now + 3):
        if new > 0:
            yield Size(words=f"{largest.now} made {new}", values={largest.full: new})
    if found[0].now > 1:
        yield Size(words=f"{found[0].now} made 1", values={found[0].full: 1})
    yield from same_side[:_MOST_SAME_SIDE]


def _nearer(found: Sequence[Extent]) -> Iterator[Size]:
    """The extent that was shrunk most, shrunk less, with the same alignment; the largest first."""
    item = max(found, key=lambda one: one.full / one.now)
    chain = [item.full]
    while chain[-1] > item.now and shrunk(chain[-1], 2) < chain[-1]:
        chain.append(shrunk(chain[-1], 2))
    for value in chain:
        if value > item.now and (value / item.now) ** item.power <= _MOST_TIMES:
            words = f"{item.now} made {value}, nearer to the problem's own {item.full}"
            yield Size(words=words, values={item.full: value}, decides=True, nearer=True)


def _stretched(found: Sequence[Extent], elements: int) -> Iterator[Size]:
    """The problem's own length of one extent, or as much of it as fits with the others made small.

    What is kept in registers or shared memory, or looped over a fixed number of times, shows only there.
    """
    for item in sorted(found, key=lambda one: one.now / one.full)[:_MOST_STRETCHED]:
        chain = [item.full]
        while chain[-1] > item.now and shrunk(chain[-1], 2) < chain[-1]:
            chain.append(shrunk(chain[-1], 2))
        for new in chain:
            others = _made_small(item, new, found, elements) if new > item.now else None
            if others is None:
                continue
            small = [one for one in found if others.get(one.full, one.now) != one.now]
            if small:
                own = "the problem's own" if new == item.full else f"nearer to the problem's own {item.full}"
                rest = "".join(f" and {one.now} made {others[one.full]}" for one in small)
                yield Size(
                    words=f"{item.now} made {new}, {own},{rest}",
                    values={item.full: new, **others},
                    decides=True,
                    control=others,
                )
            break


def _made_small(item: Extent, new: int, found: Sequence[Extent], elements: int) -> dict[int, int] | None:
    """Values of the other extents with which `item` may be `new`; None where none are small enough."""
    room = _MOST_TIMES * elements / (new / item.now) ** item.power
    size = float(elements)
    powers = {one.full: one.power for one in found}
    values = {one.full: one.now for one in found if one.full != item.full}
    while size > room:
        largest = max(values, key=lambda full: values[full], default=None)
        if largest is None or values[largest] < 2 * _LEAST_EXTENT:
            return None
        smaller = shrunk(values[largest], _LEAST_EXTENT)
        if smaller >= values[largest]:
            return None
        size *= (smaller / values[largest]) ** powers[largest]
        values[largest] = smaller
    return values


def _sorted_out(size: Size, same_side: list[Size]) -> Iterator[Size]:
    if size.decides:
        yield size
    else:
        same_side.append(size)


def _across(item: Extent, limit: int) -> Size | None:
    """The extent on the other side of a threshold from where it is now."""
    step = _alignment(item.now)
    below = item.now < limit
    new = -(-limit // step) * step if below else (limit - 1) // step * step
    if new <= 0:
        return None
    side = "from" if below else "below"
    return Size(
        words=f"{item.now} made {new}, {side} the source's {limit}",
        values={item.full: new},
        decides=below == (item.full >= limit),
    )


def _elements_across(item: Extent, elements: tuple[int, int], limit: int) -> Size | None:
    """The first extent such that the first input's elements come to the other side."""
    full, now = elements
    each = now / item.now**item.power
    below = now < limit
    root = (limit / each) ** (1 / item.power)
    new = math.ceil(root) if below else math.ceil(root) - 1
    if new <= 0 or new == item.now:
        return None
    side = "from" if below else "below"
    return Size(
        words=f"{item.now} made {new}: {round(each * new**item.power)} elements, {side} the source's {limit}",
        values={item.full: new},
        decides=below == (full >= limit),
    )


def _alignment(value: int) -> int:
    return min(value & -value, _MOST_ALIGNMENT)
