"""Layouts of a revision beside those of its parent."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.layout.changes import layout_changes
from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout


def layout(kind=LayoutKind.LAYOUT, name="l", text="8:1", **more):
    return LayoutRecord(kind=kind, name=name, text=text, **more)


def test_layouts_are_paired_by_kind_and_name_and_a_moved_line_is_no_change():
    before = layout(line=3, file="a.py")
    (same,) = layout_changes([before], [replace(before, line=9, file="b.py")])
    assert not same.changed
    (other,) = layout_changes([before], [replace(before, text="8:2")])
    assert other.changed
    assert (other.before, other.record.text) == (before, "8:2")


def test_new_and_gone_layouts_stand_alone():
    gone, new = layout(name="gone"), layout(name="new")
    found = {change.record.name: change for change in layout_changes([gone], [new])}
    assert found["gone"].after is None
    assert found["new"].before is None
    assert all(change.changed for change in found.values())


def test_layouts_of_one_name_are_paired_in_their_order():
    one, two = layout(text="8:1"), layout(text="4:1")
    found = layout_changes([one, two], [one, replace(two, text="4:2")])
    assert [(item.before.text, item.after.text) for item in found] == [("8:1", "8:1"), ("4:1", "4:2")]


def test_what_may_have_bank_conflicts_comes_first():
    kinds = (LayoutKind.LAYOUT, LayoutKind.COPY, LayoutKind.SHARED, LayoutKind.ACCESS)
    found = layout_changes([], [layout(kind, name=kind.value) for kind in kinds])
    assert [item.record.kind for item in found] == [
        LayoutKind.ACCESS, LayoutKind.SHARED, LayoutKind.COPY, LayoutKind.LAYOUT,
    ]  # fmt: skip


def test_a_shared_tensor_whose_access_is_recorded_is_left_out():
    shared, access = layout(LayoutKind.SHARED), layout(LayoutKind.ACCESS)
    assert [item.record.kind for item in layout_changes([], [shared, access])] == [LayoutKind.ACCESS]
    other = replace(access, text="4:1")
    assert len(layout_changes([], [shared, other])) == 2


def test_reads_and_writes_of_one_tensor_are_told_apart():
    read, write = (
        layout(LayoutKind.ACCESS, views=(TvLayout(role=role, text="8:1", tiler="[8:1]"),))
        for role in ("source", "destination")
    )
    found = layout_changes([read, write], [write])
    assert {(item.before is None, item.after is None) for item in found} == {(False, False), (False, True)}
    assert sum(item.changed for item in found) == 1
