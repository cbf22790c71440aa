"""Values survive the trip through JSON unchanged."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.evaluation import (
    Correctness,
    Evaluation,
    Judged,
    NotJudged,
    NotJudgedReason,
    OutputComparison,
    Verdict,
)
from cutegen_nb.core.finding import Finding
from cutegen_nb.core.graph import Node, Ref, TensorSpec
from cutegen_nb.core.profile import (
    Access,
    Counters,
    KernelResources,
    LaunchProfile,
    LineCounters,
    Profile,
    ProfileSource,
)
from cutegen_nb.core.round import Prediction
from cutegen_nb.core.strategy import Direction


def round_trip(value):
    return decode(type(value), json.loads(json.dumps(encode(value))))


OPERANDS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(["float32", "", "mean"])
    | st.builds(Ref, st.sampled_from(["x", "node_1"]), st.integers(0, 3)),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
)


@given(args=st.lists(OPERANDS, max_size=4).map(tuple))
def test_a_node_keeps_every_operand_and_its_type(args):
    spec = TensorSpec(shape=(2, 3), dtype="float32", strides=(3, 1))
    node = Node(name="n", op="aten.add.Tensor", args=args, kwargs=(("alpha", 2.0),), outputs=(spec,))

    again = round_trip(node)

    assert again == node
    assert [type(a) for a in again.args] == [type(a) for a in node.args]


@pytest.mark.parametrize(
    "outcome",
    [Judged(verdict=Verdict.RACE), NotJudged(reason=NotJudgedReason.ABOVE_ROOF)],
)
def test_an_evaluation_keeps_its_outcome_counts_and_infinite_errors(outcome):
    compared = OutputComparison(
        index=0,
        shape=(4,),
        dtype="float32",
        matches=False,
        max_abs_error=math.inf,
        relative_l2_error=0.5,
        reference_relative_l2_error=1e-8,
        tolerance_abs=1e-6,
        tolerance_rel=1e-6,
        tolerance_l2=1e-6,
        bad_fraction=0.25,
        first_bad=(3,),
        first_bad_values=(math.inf, 1.0),
    )
    launch = LaunchProfile(
        kernel="k",
        grid=(1, 2, 3),
        block=(32, 1, 1),
        dynamic_smem_bytes=0,
        counters=Counters(warp_instructions=3, flops={"cuda.f32": 8}),
    )
    evaluation = Evaluation(
        outcome=outcome,
        summary="s",
        device="d",
        findings=(Finding(kind="wrong-values", message="m", line=3, cta=(1, 0, 0)),),
        correctness=Correctness(seeds=(1, 2), outputs=(compared,), checks=("values",)),
        profile=Profile(source=ProfileSource.SIMULATED, device="sm_80", launches=(launch,)),
    )

    assert round_trip(evaluation) == evaluation


def test_nan_survives():
    compared = json.loads(json.dumps(encode((math.nan, -math.inf))))

    assert compared == ["NaN", "-Infinity"]
    assert math.isnan(decode(tuple[float, float], compared)[0])


def test_a_field_missing_from_older_text_takes_its_default():
    assert decode(Counters, {"_": "Counters", "branches": 4}) == Counters(branches=4)


def test_data_of_the_wrong_kind_is_refused_with_the_value():
    with pytest.raises(ValueError, match="expected int, got 'three'"):
        decode(Counters, {"_": "Counters", "branches": "three"})


def test_a_profile_keeps_its_accesses_by_kind_and_its_resources():
    counters = Counters(
        instructions={"fp32": 8, "load.global": 4},
        gmem_accesses={"load": Access(requests=4, bytes=512, passes=16, ideal=16)},
        smem_accesses={"async-copy": Access(requests=1, bytes=512, passes=8, ideal=4)},
    )
    launch = LaunchProfile(
        kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0, counters=counters,
        lines=(LineCounters(file="c.py", line=3, counters=counters),),
        resources=KernelResources(architecture="sm_80", registers=40, spill_store_bytes=4),
    )  # fmt: skip

    assert round_trip(launch) == launch


def test_a_launch_stored_before_there_were_kinds_and_resources_still_loads():
    stored = {
        "_": "LaunchProfile", "kernel": "k", "grid": [2, 1, 1], "block": [32, 1, 1], "dynamic_smem_bytes": 0,
        "static_smem_bytes": 0, "gmem_distinct_sectors": 8, "ctas_run": None,
        "counters": {"_": "Counters", "warp_instructions": 9, "flops": {"cuda.f32": 4}, "gmem_load_sectors": 8},
        "lines": [{"_": "LineCounters", "file": "c.py", "line": 3, "counters": {"_": "Counters"}}],
    }  # fmt: skip
    found = decode(LaunchProfile, json.loads(json.dumps(stored)))

    assert (found.counters.gmem_sectors, found.counters.gmem_accesses, found.resources) == (8, {}, None)
    assert found.counters + found.counters == Counters(
        warp_instructions=18, flops={"cuda.f32": 8}, gmem_load_sectors=16
    )


def test_an_enumeration_that_may_be_none_keeps_its_member():
    said = Prediction(text="sectors down", counter="gmem_load_sectors", direction=Direction.DOWN)
    assert round_trip(said) == said
    assert round_trip(said).direction is Direction.DOWN
    assert round_trip(Prediction(text="?")).direction is None
