"""Parts of an expression that are the same for a whole row, computed before the loop over it."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_nb.authors.offline.expressions import Apply, Expr, Leaf, leaves


class Hoist:
    """Gives names to what does not vary along a row; remembers them for the next loop of the kernel."""

    def __init__(self) -> None:
        self._named: dict[int, Leaf] = {}
        # Named expressions are kept: their ids are the keys above.
        self._kept: list[Expr] = []

    def split(
        self, exprs: Mapping[str, Expr], varying: frozenset[str]
    ) -> tuple[dict[str, Expr], dict[str, Expr]]:
        """(what to compute before the loop, by new name; `exprs` in terms of it)."""
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
