"""The offline author's attention on the simulator: every strategy, odd sizes, masks and wide heads."""

import re

import pytest

from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

pytestmark = pytest.mark.slow

ATTENTION = "F.scaled_dot_product_attention(q, k, v)"
CAUSAL = "F.scaled_dot_product_attention(q, k, v, is_causal=True)"
LADDERS = {
    "causal in half precision": (CAUSAL, ("1, 2", 70, 70, 64, 64), ".half()"),
    "odd lengths in float32": ("torch.softmax(q @ k.transpose(-2, -1) / 8, -1) @ v", (2, 21, 70, 64, 33), ""),
}
LONG = {
    "odd lengths and columns": (ATTENTION, (2, 65, 129, 33, 35), ""),
    "odd columns in half precision": (ATTENTION, (2, 65, 129, 33, 35), ".half()"),
    "causal in bfloat16": (CAUSAL, ("1, 2", 130, 130, 128, 128), ".bfloat16()"),
    "causal in float32": (CAUSAL, ("1, 1", 70, 70, 256, 256), ""),
    "a wide head in float32": (ATTENTION, (1, 9, 40, 1024, 1024), ""),
    "a wide head in half precision": (ATTENTION, (1, 9, 40, 1000, 1000), ".half()"),
}


def problem(expression, sizes, suffix, arguments="q, k, v", more=""):
    batch, queries, keys, depth, columns = sizes
    shapes = ((queries, depth), (keys, depth), (keys, columns))
    inputs = ", ".join(f"torch.randn({batch}, {rows}, {width}){suffix}" for rows, width in shapes)
    return f"""
import torch
import torch.nn.functional as F

def reference({arguments}):
    return {expression}

def get_inputs():
    return [{inputs}{more}]
"""


def given(source):
    return Problem(name="attention", source=source, form=ProblemForm.FUNCTION, function="reference")


def menu_of(source):
    return {item.name for item in OperatorsWriter().menu(trace_facts(given(source)))}


def kernels_of(source):
    """Names of the kernels of the first file."""
    written = OperatorsWriter().write(given(source), trace_facts(given(source)), ())
    return set(re.findall(r"^def (\w+)_kernel\(", written.source, re.MULTILINE))


def check(offline_simulator, source, steps=None):
    answer = offline_simulator.ask("attention", source, steps=steps)
    assert "revisions" in answer, answer
    wrong = [
        (entry["applied"], entry["verdict"]) for entry in answer["revisions"] if entry["verdict"] != "right"
    ]
    assert not wrong
    return answer["revisions"]


@pytest.mark.long
@pytest.mark.parametrize("name", LADDERS)
def test_strategies_attend_as_torch_does(offline_simulator, name):
    revisions = check(offline_simulator, problem(*LADDERS[name]))
    assert revisions[-1]["applied"][-1] == "attention-pipeline"
    assert revisions[-1]["counters"]["sectors"] < revisions[0]["counters"]["sectors"]


@pytest.mark.long
@pytest.mark.every(long=10)
@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("step", [0, 1, 2])
def test_every_strategy_is_right_at_odd_and_at_wide_sizes(offline_simulator, name, step):
    check(offline_simulator, problem(*LONG[name]), steps=[step])


GROUPED = {
    "by the function": "F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)",
    "by repetition": "F.scaled_dot_product_attention(q, *(x.repeat_interleave(3, 1) for x in (k, v)))",
}


@pytest.mark.long
@pytest.mark.parametrize("name", GROUPED)
def test_heads_of_keys_that_serve_several_queries_are_attended(offline_simulator, name):
    shapes = ("2, 6, 40, 32", "2, 2, 40, 32", "2, 2, 40, 32")
    source = f"""
import torch
import torch.nn.functional as F

def reference(q, k, v):
    return {GROUPED[name]}

def get_inputs():
    return [{", ".join(f"torch.randn({shape})" for shape in shapes)}]
"""
    assert "attention-tiles" in menu_of(source)
    check(offline_simulator, source, steps=[0])


@pytest.mark.long
def test_a_mask_is_added_to_the_scores_wherever_it_is_broadcast(offline_simulator):
    expression = "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)"
    source = problem(expression, ("2, 3", 20, 30, 64, 64), "", "q, k, v, mask", ", torch.randn(20, 30)")
    assert len(check(offline_simulator, source)) == 3


HOPPER = {
    "odd lengths, other columns": (ATTENTION, ("1, 2", 100, 200, 64, 72), ".half()", "attention-wgmma"),
    "odd lengths of one head in float32": (ATTENTION, ("1, 1", 100, 200, 64, 72), "", "attention-fp16x2"),
    "zeros in float32": (CAUSAL, ("1, 1", 70, 70, 64, 64), " * 0.0", "attention-fp16x2"),
    "wide heads in float32": (ATTENTION, ("1, 2", 130, 256, 320, 384), "", "attention-products"),
}
LONG_HOPPER = {
    "whole blocks": (ATTENTION, ("1, 2", 256, 256, 64, 64), ".half()", "attention-wgmma"),
    "more tiles than multiprocessors": (ATTENTION, ("4, 40", 16, 16, 64, 64), ".half()", "attention-wgmma"),
    "three dimensions": (ATTENTION, (2, 128, 128, 64, 64), ".half()", "attention-wgmma"),
    "causal in bfloat16": (CAUSAL, ("1, 2", 200, 200, 128, 128), ".bfloat16()", "attention-wgmma"),
    "two heads in float32": (ATTENTION, ("1, 2", 100, 200, 64, 72), "", "attention-fp16x2"),
    "the widest heads": (ATTENTION, ("1, 1", 70, 150, 256, 192), ".half()", "attention-wgmma"),
    "whole blocks in float32": (ATTENTION, ("1, 2", 128, 256, 64, 64), "", "attention-fp16x2"),
    "causal in float32": (CAUSAL, ("1, 2", 200, 200, 128, 128), "", "attention-fp16x2"),
    "wide and causal in float32": (CAUSAL, ("1, 2", 256, 256, 320, 320), "", "attention-products"),
    "a row that no vector fits": (ATTENTION, ("1, 2", 130, 257, 320, 384), "", "attention-products"),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("name", HOPPER)
def test_hopper_kernels_attend_as_torch_does(hopper_simulator, name):
    *case, expected = HOPPER[name]
    (revision,) = check(hopper_simulator, problem(*case), steps=[1])
    assert revision["applied"] == [expected]


@pytest.mark.long
@pytest.mark.every(long=8)
@pytest.mark.parametrize("name", LONG_HOPPER)
def test_hopper_kernels_attend_at_more_sizes(hopper_simulator, name):
    *case, expected = LONG_HOPPER[name]
    (revision,) = check(hopper_simulator, problem(*case), steps=[1])
    assert revision["applied"] == [expected]


@pytest.mark.long
@pytest.mark.parametrize(
    ("suffix", "sizes", "expected"),
    [
        (".half()", ("1, 2", 20, 30, 64, 64), "attention-wgmma"),
        ("", ("1, 2", 100, 130, 64, 64), "attention-fp16x2"),
        ("", ("1, 2", 100, 256, 320, 320), "attention-products"),
    ],
)
def test_hopper_kernels_add_a_mask(hopper_simulator, suffix, sizes, expected):
    expression = "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)"
    mask = f", torch.randn({sizes[1]}, {sizes[2]}){suffix}"
    source = problem(expression, sizes, suffix, "q, k, v, mask", mask)
    (revision,) = check(hopper_simulator, source, steps=[1])
    assert revision["applied"] == [expected]


@pytest.mark.parametrize("columns", [36, 320])
def test_a_head_too_wide_for_hopper_tiles_or_not_of_whole_16_bytes_has_the_others(columns):
    names = menu_of(problem(ATTENTION, ("1, 1", 20, 30, columns, columns), ".half()"))
    assert "attention-wgmma" not in names
    assert "attention-tiles" in names


@pytest.mark.long
@pytest.mark.parametrize("columns", [36, 320])
def test_the_others_are_right_on_hopper(hopper_simulator, columns):
    source = problem(ATTENTION, ("1, 1", 20, 30, columns, columns), ".half()")
    (revision,) = check(hopper_simulator, source, steps=[1])
    assert revision["applied"] == ["attention-tiles"]


@pytest.mark.first(1)
@pytest.mark.parametrize(("batch", "offered"), [("256, 16", True), ("1024, 16", False)])
def test_hopper_tiles_are_offered_while_offsets_fit_in_32_bits(batch, offered):
    names = menu_of(problem(ATTENTION, (batch, 4096, 4096, 64, 64), ".half()"))
    assert ("attention-wgmma" in names) == offered


HEADS = {
    "slices": "(z.view(2, -1, 2, 32).transpose(1, 2) for z in x.split(64, 2))",
    "three tensors": "(z.view(2, -1, 2, 32).transpose(1, 2) for z in (x[..., :64], x[..., 64:128] + 1, y))",
    "one tensor unbound": "x.reshape(2, -1, 3, 2, 32).permute(2, 0, 3, 1, 4).unbind(0)",
    "one head of keys": "(z.unflatten(2, (-1, 32)).transpose(1, 2) for z in x.split([64, 32, 32, 64], 2)[:3])",
}
WAYS = {
    "plain": ATTENTION,
    "causal": CAUSAL,
    "grouped": ATTENTION.replace(")", ", enable_gqa=True)"),
    "masked": "F.scaled_dot_product_attention(q, k, v, attn_mask=mask.float().to(x.dtype))",
    "filled": "torch.softmax((q @ k.transpose(-2, -1) / 32**0.5).masked_fill(mask == 0, -math.inf), -1) @ v",
    "chosen": "torch.softmax(torch.where(mask > 0, q @ k.transpose(-2, -1) / 32**0.5, -1e4), -1) @ v",
}


def module(heads, way, suffix="", back=".transpose(1, 2).reshape(2, -1, 64)", rows=20):
    """Self-attention of projected inputs, as models write it."""
    return f"""
import math

import torch
import torch.nn.functional as F

def reference(x, mask):
    y = x[..., 128:] * 2
    q, k, v = {HEADS[heads]}
    return ({WAYS[way]}){back}

def get_inputs():
    return [torch.randn(2, {rows}, 192){suffix}, torch.tril(torch.ones({rows}, {rows}))]
"""


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("heads", "way", "others"),
    [
        ("slices", "causal", set()),
        ("one tensor unbound", "plain", set()),
        ("slices", "filled", {"elementwise"}),  # the mask
        ("one head of keys", "grouped", {"elementwise"}),  # heads of keys and values, repeated
    ],
)
def test_heads_are_neither_copied_before_nor_behind_the_kernel(heads, way, others):
    assert kernels_of(module(heads, way, ".half()")) == {"attention"} | others


IN_PLACE = {
    "causal in half precision": ("slices", "causal", ".half()"),
    "plain in float32": ("one tensor unbound", "plain", ""),
}


@pytest.mark.long
@pytest.mark.parametrize("name", IN_PLACE)
def test_hopper_kernels_read_heads_where_they_lie(hopper_simulator, name):
    (revision,) = check(hopper_simulator, module(*IN_PLACE[name]), steps=[1])
    assert revision["applied"][0] in {"attention-wgmma", "attention-fp16x2"}


@pytest.mark.first(1)
@pytest.mark.parametrize(("way", "step"), [("filled", 1), ("chosen", 0)])
def test_scores_are_filled_where_a_mask_of_bools_says(offline_simulator, way, step):
    check(offline_simulator, module("slices", way, ".half()"), steps=[step])


@pytest.mark.long
@pytest.mark.every(long=14)
@pytest.mark.parametrize("suffix", ["", ".half()", ".bfloat16()"])
@pytest.mark.parametrize(
    ("heads", "way"),
    # Fewer heads of keys have a flag of their own.
    [(one, way) for one in HEADS for way in WAYS if (one == "one head of keys") == (way == "grouped")],
)
def test_every_strategy_reads_heads_where_they_lie(offline_simulator, hopper_simulator, heads, way, suffix):
    check(offline_simulator, module(heads, way, suffix), steps=[0, 1, 2])
    check(hopper_simulator, module(heads, way, suffix), steps=[1])


@pytest.mark.long
@pytest.mark.parametrize("back", ["", ".transpose(1, 2)", ".permute(2, 0, 1, 3)"])
def test_outputs_are_stored_in_any_order_of_rows_and_heads(offline_simulator, hopper_simulator, back):
    for simulator in (offline_simulator, hopper_simulator):
        check(simulator, module("slices", "plain", ".half()", back), steps=[1])


def test_element_wise_work_behind_attention_keeps_a_kernel_of_its_own():
    source = problem(f"torch.relu({ATTENTION})", ("1, 2", 10, 10, 32, 32), "")
    assert "fuse-tail" not in menu_of(source)
    assert kernels_of(source) == {"attention", "elementwise"}
