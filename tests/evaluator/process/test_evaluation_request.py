"""A request survives its way to the worker."""

from dataclasses import fields

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.evaluator.process.evaluation_request import EvaluationRequest, FullSizeRequest
from cutegen_nb.testing.examples import relu_facts, relu_problem


def test_a_request_comes_back_as_it_was():
    request = EvaluationRequest(
        problem=relu_problem(), rewrites=(), source="a", digest="b", tolerances=(), baselines=("eager",),
        longest_sum=1, least_bytes=8, flops=1, peak_flops=0.0, noise_fraction=None, deadline_s=60.0, tier=Tier.B,
        higher_tiers_s=90.0, exact=True, added_inputs=("signed",), only_if_faster=False,
    )  # fmt: skip
    assert decode(EvaluationRequest, encode(request)) == request
    assert request.rival_source == ""


def test_a_number_among_the_inputs_keeps_its_type():
    inputs = relu_facts().full.graph.inputs
    request = FullSizeRequest(
        problem=relu_problem(), rewrites=(), source="a", digest="b", inputs=inputs,
        scalars=((1, True), (2, 3), (3, 0.5)), deadline_s=20.0,
    )  # fmt: skip
    found = decode(FullSizeRequest, encode(request))
    assert found == request
    assert [type(value) for _, value in found.scalars] == [bool, int, float]
    assert {one.name for one in fields(FullSizeRequest)} & {"tier"} == set()
