"""Comparison of a revision's layouts with those of its parent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cutegen_nb.core.layout import LayoutKind, LayoutRecord

_FIRST = (LayoutKind.ACCESS, LayoutKind.SHARED, LayoutKind.MMA, LayoutKind.COPY, LayoutKind.LAYOUT)
"""Order of kinds in a comparison: first those that can have bank conflicts."""

_MOST = 256
"""Most layouts of a candidate that are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChange:
    """One layout before and after a revision."""

    before: LayoutRecord | None
    """The parent's layout; None for a new one."""
    after: LayoutRecord | None
    """The revision's layout; None for one that is gone."""

    @property
    def record(self) -> LayoutRecord:
        """The revision's layout, or the parent's for one that is gone."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def changed(self) -> bool:
        """True if the layout differs from the parent's; its line and file in the source are ignored."""
        return _plain(self.before) != _plain(self.after)


def layout_changes(before: Iterable[LayoutRecord], after: Iterable[LayoutRecord]) -> tuple[LayoutChange, ...]:
    """Pair layouts by kind and name, those of shared memory first.

    Several layouts of the same name are paired in their order.
    """
    old, new = _by_key(_worth_comparing(before)), _by_key(_worth_comparing(after))
    keys = dict.fromkeys([*new, *old])
    found = [LayoutChange(before=old.get(key), after=new.get(key)) for key in keys]
    return tuple(sorted(found, key=lambda item: _FIRST.index(item.record.kind)))


def _worth_comparing(records: Iterable[LayoutRecord]) -> list[LayoutRecord]:
    """Leave out shared tensors whose accesses are recorded: a drawing of an access shows the banks too."""
    given = list(records)[:_MOST]
    accessed = {(item.name, item.text) for item in given if item.kind is LayoutKind.ACCESS}
    return [
        item for item in given if item.kind is not LayoutKind.SHARED or (item.name, item.text) not in accessed
    ]


def _by_key(records: Iterable[LayoutRecord]) -> dict[tuple[LayoutKind, str, str, int], LayoutRecord]:
    found: dict[tuple[LayoutKind, str, str, int], LayoutRecord] = {}
    for record in records:
        role = record.views[0].role if record.kind is LayoutKind.ACCESS and record.views else ""
        number = 0
        # Records with the same name are numbered, so that they pair up in their order.
        while (record.kind, record.name, role, number) in found:
            number += 1
        found[record.kind, record.name, role, number] = record
    return found


def _plain(record: LayoutRecord | None) -> LayoutRecord | None:
    """Clear a record's place in the source, which does not count in a comparison."""
    return None if record is None else replace(record, line=0, tensor_line=0, file="")
