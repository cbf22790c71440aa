"""Layouts of a revision against those of the one it was made from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cutegen_nb.core.layout import LayoutKind, LayoutRecord

_FIRST = (LayoutKind.ACCESS, LayoutKind.SHARED, LayoutKind.MMA, LayoutKind.COPY, LayoutKind.LAYOUT)
"""What is worth looking at first: where bank conflicts are."""

_MOST = 256
"""Layouts of a candidate that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChange:
    """One layout before and after a revision."""

    before: LayoutRecord | None
    """As its parent had it; None for a new one."""
    after: LayoutRecord | None
    """As it is now; None for one that is gone."""

    @property
    def record(self) -> LayoutRecord:
        """As it is now, or was last."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def changed(self) -> bool:
        """Whether it is another than before, wherever in the source it stands."""
        return _plain(self.before) != _plain(self.after)


def layout_changes(before: Iterable[LayoutRecord], after: Iterable[LayoutRecord]) -> tuple[LayoutChange, ...]:
    """Layouts by kind and name, those of shared memory first; of several with one name, in their order."""
    old, new = _by_key(_telling(before)), _by_key(_telling(after))
    keys = dict.fromkeys([*new, *old])
    found = [LayoutChange(before=old.get(key), after=new.get(key)) for key in keys]
    return tuple(sorted(found, key=lambda item: _FIRST.index(item.record.kind)))


def _telling(records: Iterable[LayoutRecord]) -> list[LayoutRecord]:
    """Without tensors whose accesses are known: a drawing of those shows the tensor's banks too."""
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
        while (record.kind, record.name, role, number) in found:
            number += 1
        found[record.kind, record.name, role, number] = record
    return found


def _plain(record: LayoutRecord | None) -> LayoutRecord | None:
    return None if record is None else replace(record, line=0, tensor_line=0, file="")
