"""Worked examples of requests: right on the simulator, chosen by class, type and device, and short enough."""

import ast
import json

import pytest

from cutegen_nb.authors.offline.examples import (
    FOLDER,
    LONGEST_CHARACTERS,
    examples,
    kernel_of,
    worked_example,
)
from cutegen_nb.authors.offline.outline import outlined
from cutegen_nb.core.codec import encode
from cutegen_nb.core.ports import FIRST_KERNEL, GuideRequest
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.evaluator.problem.trace import trace_facts
from cutegen_nb.prompting.library import shipped_library

EXAMPLES = {item.name: item for item in examples()}
CLASSES = {item.value for item in WorkloadClass}
DTYPES = ("float16", "bfloat16", "float32")
ARCHITECTURES = ("sm_80", "sm_90a", "sm_120a")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.every(long=4)
@pytest.mark.parametrize("name", EXAMPLES)
def test_each_is_right_on_the_simulator(offline_simulator, hopper_simulator, name):
    item = EXAMPLES[name]
    child = hopper_simulator if item.architectures == ("sm_90",) else offline_simulator
    answer = child.ask(name, item.source, applied=list(item.steps))
    assert [entry["verdict"] for entry in answer.get("revisions", [answer])] == ["right"], answer


@pytest.mark.every(test=8)
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_stored_facts_are_those_of_its_problem(name):
    stored = json.loads((FOLDER / "facts.json").read_text(encoding="utf-8"))
    assert stored.keys() == EXAMPLES.keys()
    # tools/make_examples.py writes the facts again
    assert stored[name] == json.loads(json.dumps(encode(trace_facts(EXAMPLES[name].problem))))


@pytest.mark.every(test=3)
@pytest.mark.parametrize("name", EXAMPLES)
def test_each_says_what_it_shows_in_names_that_exist_and_is_short_enough(name):
    item = EXAMPLES[name]
    known = {strategy.name for strategy in shipped_library().strategies()} | {FIRST_KERNEL}
    assert set(item.shows) <= known
    assert set(item.classes) <= CLASSES
    assert set(item.dtypes) <= set(DTYPES)
    code = outlined(kernel_of(item), item.focus, LONGEST_CHARACTERS)
    ast.parse(code)
    assert len(code) <= LONGEST_CHARACTERS
    assert "_kernel(" in code


def requests_of(item):
    return [
        GuideRequest(wanted=wanted, classes=("fused", kind), dtypes=(dtype,), architecture=architecture)
        for wanted in item.shows
        for kind in CLASSES
        for dtype in DTYPES
        for architecture in ARCHITECTURES
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_offered_for_its_own_class_type_and_device_and_for_no_other(name):
    item = EXAMPLES[name]
    for request in requests_of(item):
        own = (
            request.classes[1] in item.classes
            and request.dtypes[0] in item.dtypes
            and (not item.architectures or request.architecture.rstrip("a") in item.architectures)
        )
        assert item.fits(request) is own, request


def test_each_is_the_first_that_fits_some_request():
    reached = {
        next((other.name for other in EXAMPLES.values() if other.fits(request)), "")
        for item in EXAMPLES.values()
        for request in requests_of(item)
    }
    assert set(EXAMPLES) <= reached


def request(**given):
    return GuideRequest(
        **{"wanted": "row-in-cluster", "classes": ("norm",), "dtypes": ("float32",), "architecture": "sm_90a"}
        | given
    )


def test_a_request_gets_one_example_and_the_same_each_time():
    text = worked_example(request())
    assert text.startswith("## Worked example: RMS norm")
    assert "map_dsmem_ptr" in text
    assert text == worked_example(request())


@pytest.mark.parametrize(
    "other",
    [
        {"wanted": "no-such-strategy"},
        {"wanted": ""},
        {"classes": ("scan",)},
        {"dtypes": ("float16",)},
        {"dtypes": ("float16", "float32")},
        {"dtypes": ("int64",)},
        {"architecture": "sm_80"},
        {"architecture": "sm_100a"},
    ],
)
def test_a_request_that_differs_gets_none(other):
    assert worked_example(request(**other)) == ""


def test_integers_beside_floats_of_the_right_type_do_not_hide_it():
    assert worked_example(request(dtypes=("float32", "int64")))
