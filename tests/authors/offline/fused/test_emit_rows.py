"""Row kernels: who reduces a row, and how its threads' parts are joined."""

import ast

import pytest

from cutegen_nb.authors.offline.fused.variants import CTA_PER_ROW, ONE_PASS, SPLIT, WARP_PER_ROW

INPUTS = ["torch.rand(4096, 3000)"]


@pytest.mark.parametrize(
    ("steps", "words", "missing"),
    [
        ((), "for col in", "sync_threads"),
        ((WARP_PER_ROW,), "lane", "sync_threads"),
        ((CTA_PER_ROW,), "sync_threads", "SPLITS"),
    ],
)
def test_a_thread_a_warp_or_a_cta_takes_a_row(emitted, steps, words, missing):
    _, (text,) = emitted("x.sum(1)", INPUTS, *steps)
    ast.parse(text.source)
    assert words in text.source
    assert missing not in text.source


def test_a_row_that_registers_hold_is_read_once(emitted):
    inputs = ["torch.rand(4096, 2048)"]
    _, (twice,) = emitted("torch.softmax(x, 1)", inputs, WARP_PER_ROW)
    _, (once,) = emitted("torch.softmax(x, 1)", inputs, WARP_PER_ROW, ONE_PASS)
    assert "share of the row in registers" in once.source
    assert once.source.count("autovec_copy(gX") == 1
    assert twice.source.count("mX[row, col]") == 3


def test_a_split_row_has_partial_results_of_each_register(emitted):
    _, (text, _) = emitted("x.sum(1)", ["torch.rand(4, 1000000)"], CTA_PER_ROW, SPLIT)
    assert text.splits
    assert [one.tensor for one in text.scratch] == ["mSumParts"] or len(text.scratch) == 1
