"""Ways from a coordinate of the output to one of the input."""

import types

import pytest

from cutegen_nb.authors.offline.operators.gathers.attributes import AxisMap

WAYS = [
    (AxisMap(0), [0, 1, 2, 3], 4),
    (AxisMap(0, "shift", 1, 2), [-1, 0, 1, 2, 3, 4], 4),
    (AxisMap(0, "step", 3), [0, 3, 6], 8),
    (AxisMap(0, "reverse"), [3, 2, 1, 0], 4),
    (AxisMap(0, "repeat", 2), [0, 0, 1, 1], 2),
    (AxisMap(0, "roll", 1), [1, 2, 3, 0], 4),
    (AxisMap(0, "roll", -1), [3, 0, 1, 2], 4),
    (AxisMap(0, "clamp", 2, 3), [0, 0, 0, 1, 2, 3, 3], 4),
    (AxisMap(0, "mirror", 2, 3), [2, 1, 0, 1, 2, 3, 2], 4),
]


@pytest.mark.parametrize(("way", "places", "extent"), WAYS)
def test_expressions_give_the_places_and_their_number(way, places, extent):
    cutlass = types.SimpleNamespace(min=min, max=max)
    count = eval(way.extent("extent"), {"extent": extent})
    text = way.coordinate("at", "extent")
    assert [eval(text, {"at": at, "extent": extent, "cutlass": cutlass}) for at in range(count)] == places


def test_only_places_outside_need_a_test():
    assert AxisMap(0, "shift", 1, 1).may_miss
    assert AxisMap(0, "shift", 0, 1).may_miss
    assert not AxisMap(0, "shift", -1, -1).may_miss
    assert not AxisMap(0, "clamp", 2, 3).may_miss
