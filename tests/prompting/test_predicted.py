from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_nb.core.strategy import Direction
from cutegen_nb.prompting.predicted import predicted

DOWN, UP = Direction.DOWN, Direction.UP


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sectors down 75%, 1.3x", ("gmem_sectors", DOWN, 0.75, 1.3)),
        ("`gmem_load_sectors` falls by 50 %, speedup 1.2×", ("gmem_load_sectors", DOWN, 0.5, 1.2)),
        ("warp_instructions down 4x, 1.1x speedup", ("warp_instructions", DOWN, 0.75, 1.1)),
        ("warp instructions drop 4×; expected speedup: 1.5", ("warp_instructions", DOWN, 0.75, 1.5)),
        ("shared memory bank conflicts are halved, ~1.4x faster", ("smem_wavefronts", DOWN, 0.5, 1.4)),
        ("latency_ms down 20 %", ("latency_ms", DOWN, 0.2, None)),
        ("30% faster", ("", None, None, 1.3)),
        ("speedup of about 2.5x", ("", None, None, 2.5)),
        ("speedup 15%", ("", None, None, 1.15)),
        ("DRAM traffic reduced 2x, 1.8x speedup", ("gmem_bytes", DOWN, 0.5, 1.8)),
        ("global load sectors increase 10%, fewer instructions", ("gmem_load_sectors", UP, 0.1, None)),
        ("smem_wavefronts ↓ 87.5%", ("smem_wavefronts", DOWN, 0.875, None)),
        ("smem_wavefronts up", ("smem_wavefronts", UP, None, None)),
        ("it should help", ("", None, None, None)),
        ("**gmem_sectors** down 3,5 %", ("gmem_sectors", DOWN, 0.035, None)),
    ],
)
def test_a_prediction_is_read_from_the_words_models_use(line, expected):
    found = predicted(f"Rationale: because.\nPredicted effect: {line}\n")
    assert found is not None
    assert (found.counter, found.direction, found.change_fraction, found.speedup) == expected
    assert found.text


@pytest.mark.parametrize(
    "words",
    ["", "Rationale: x", "Predicted effect: none.", "Predicted effect:\n", "**Predicted effect:** n/a"],
)
def test_where_nothing_is_predicted_there_is_no_prediction(words):
    assert predicted(words) is None


def test_a_heading_in_bold_is_a_heading():
    found = predicted("**Predicted effect:** `barriers` down 50%, 1.05x")
    assert found is not None
    assert (found.counter, found.speedup) == ("barriers", 1.05)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "gmem_load_sectors down 75 %, barriers unchanged, speedup 1.8×",
            [("gmem_load_sectors", DOWN, 0.75), ("barriers", None, 0.0)],
        ),
        (
            "gmem_requests and gmem_load_sectors down 75 %; warp_instructions up 10 %",
            [
                ("gmem_requests", DOWN, 0.75),
                ("gmem_load_sectors", DOWN, 0.75),
                ("warp_instructions", UP, 0.1),
            ],
        ),
        (
            "gmem_load_sectors falls, by about 50 %, while smem_wavefronts stays the same",
            [("gmem_load_sectors", DOWN, 0.5), ("smem_wavefronts", None, 0.0)],
        ),
        ("barriers: -50 %, latency_ms -30 %", [("barriers", DOWN, 0.5), ("latency_ms", DOWN, 0.3)]),
        ("warp_instructions doubled", [("warp_instructions", UP, 1.0)]),
        ("barriers down 50 %, barriers up 10 %", [("barriers", DOWN, 0.5)]),
    ],
)
def test_every_counter_of_a_prediction_has_its_own_change(line, expected):
    found = predicted(f"Predicted effect: {line}\n")
    assert [(item.counter, item.direction, item.change_fraction) for item in found.changes] == expected


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_any_words_are_read_without_an_error(text):
    predicted(f"Predicted effect: {text}")
