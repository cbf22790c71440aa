"""Measured kernels under their roofs, as values for the panel."""

from __future__ import annotations

import json
from pathlib import Path

from cutegen_nb.notebook.review.roofline_chart import chart
from cutegen_nb.notebook.view import roofline
from cutegen_nb.store.bundle import read_bundle

SESSIONS = Path(__file__).parents[3] / "notebooks" / "sessions"


def test_measured_kernels_stand_in_the_order_of_their_rounds_with_time_and_share():
    made = chart(read_bundle(SESSIONS / "sum_h100.cutegen"))
    assert [point["round"] for point in made["points"]] == [0, 1]
    assert [point["from"] for point in made["points"]] == [-1, 0]
    assert made["points"][1]["words"][:2] == ["84.5 % of roof", "Latency 3.38 ms"]
    assert made["levels"][0]["words"] == "DRAM 3.01 TB/s"
    for point in [*made["points"], made["problem"]]:
        assert made["x"][0] < point["x"] < made["x"][1]
        assert made["y"][0] < point["y"] < made["y"][1]
    assert json.loads(json.dumps(made)) == made


def test_simulated_kernels_have_no_rate_and_keep_the_picture_by_bytes():
    session = read_bundle(SESSIONS / "softmax_simulated.cutegen")
    assert chart(session) is None
    assert roofline(session, dark=False)["image"].startswith("data:image/png;base64,")
