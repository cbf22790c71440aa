"""Records of strategies: identity, names, keys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.search.knowledge import AppliedStrategy, ProblemKey, RecordSource, Regime, StrategyRecord
from cutegen_nb.core.strategy import Alignment, Bound, Strategy, StrategySource

KEY = ProblemKey(
    workload_class=WorkloadClass.FUSED, parts=(WorkloadClass.MATMUL, WorkloadClass.SOFTMAX),
    operators=("mm",), dtype="float16", regime=Regime.TALL_PRODUCT,
)  # fmt: skip
LIBRARY = Strategy(name="tile", statement="Use tiles.")
RECORD = StrategyRecord(
    strategy=LIBRARY, aligned=Alignment(statement=".", by="model"),
    line=(AppliedStrategy(name="coalesce", statement="."),), problem=KEY, problem_digest="p",
    parent_digest="a", candidate_digest="b", architecture="sm_90a", device="NVIDIA H200", bound=Bound.MEMORY,
    parent_in_force=(), seconds=1.0, speedup=2.0, total_speedup=3.0, estimated=False, session="s",
    session_at="", revision="r1", recorded_at="2026",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "is_same"),
    [
        ({"seconds": 2.0, "speedup": 1.0, "recorded_at": "2027", "session": "t", "revision": "r9"}, True),
        ({"source": RecordSource.IMPORTED}, True),
        ({"candidate_digest": "c"}, False),
        ({"parent_digest": "c"}, False),
        ({"device": "NVIDIA A100"}, False),
        ({"problem_digest": "q"}, False),
        ({"estimated": True}, False),
        ({"strategy": replace(LIBRARY, name="other")}, False),
    ],
)
def test_the_same_kernels_timed_again_are_the_same_record(changed, is_same):
    assert (replace(RECORD, **changed).digest == RECORD.digest) is is_same


def test_text_that_no_encoding_holds_makes_a_digest_too():
    assert len(replace(RECORD, device="\ud800").digest) == 64


def test_the_names_lead_from_the_first_kernel_to_this_one():
    assert RECORD.names == ("coalesce", "tile")


def test_a_key_names_its_dominant_part_and_is_told_in_words():
    assert KEY.dominant is WorkloadClass.MATMUL
    assert KEY.words == "fused (matrix product, softmax), float16, tall product"
    alone = replace(KEY, workload_class=WorkloadClass.NORM, parts=())
    assert alone.dominant is WorkloadClass.NORM
    assert alone.words == "norm, float16, tall product"


def test_a_library_keeps_its_names_and_others_are_told_apart_by_their_words():
    assert replace(LIBRARY, statement="Corrected words.").identity == "tile"
    own = replace(LIBRARY, source=StrategySource.PERSON.value)
    assert own.identity.startswith("tile-")
    assert own.identity == replace(own, classes=(WorkloadClass.NORM,)).identity
    assert (
        len({own.identity, replace(own, statement="Other.").identity, replace(own, parents=("x",)).identity})
        == 3
    )
