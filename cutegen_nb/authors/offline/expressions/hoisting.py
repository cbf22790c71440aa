"""Loop-invariant code motion: parts of an expression that are constant along a row move before the loop."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_nb.authors.offline.expressions.expressions import Apply, Expr, Leaf, leaves


class Hoist:
    """Names for the parts that do not vary along a row, shared by all loops of a kernel."""

    def __init__(self) -> None:
        self._named: dict[int, Leaf] = {}
        # Keep the named expressions alive: the keys above are their ids.
        self._kept: list[Expr] = []

    def split(
        self, exprs: Mapping[str, Expr], varying: frozenset[str]
    ) -> tuple[dict[str, Expr], dict[str, Expr]]:
        """Return the parts to compute before the loop, by new name, and `exprs` in terms of these names."""
        before: dict[str, Expr] = {}
        known: dict[int, Expr] = {}

        def outside(expr: Expr) -> Expr:
            done = known.get(id(expr))
            if done is None:
                done = known[id(expr)] = rewritten(expr)
            return done

        def rewritten(expr: Expr) -> Expr:
            if not isinstance(expr, Apply):
                return expr
            used = leaves(expr)
            if used & varying:
                return Apply(expr.op, tuple(outside(arg) for arg in expr.args), expr.kind)
            if not used:
                return expr
            if id(expr) not in self._named:
                name = f"row{len(self._named)}"
                self._named[id(expr)] = Leaf(name, expr.kind)
                self._kept.append(expr)
                before[name] = expr
            return self._named[id(expr)]

        return before, {name: outside(expr) for name, expr in exprs.items()}
