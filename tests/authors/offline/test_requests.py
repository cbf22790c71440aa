"""A person's words on a kernel of the offline author: which are read, which are carried out, and what is said."""

from __future__ import annotations

import pytest

from cutegen_nb.authors.offline.requests import AskedSettings, followed, sentence, settings_in

SOURCE = """THREADS = 256  # eight warps
WARPS = THREADS // 32
IN_FLIGHT = 1  # vectors in flight
UNROLL = 1
VEC = 4  # elements in 128 bits
TILE = 16
vector = math.gcd(x1, 4)
launch(x, math.gcd(x0 * x1, 4), parts=(sum_parts,))
"""
BLOCKED = "THREADS = 256\nSTAGES = 2\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("use 128 threads", {"threads": 128}),
        ("128-thread CTAs please", {"threads": 128}),
        ("Threads per block: 64", {"threads": 64}),
        ("set threads = 512", {"threads": 512}),
        ("64 threads, no: 128 threads", {"threads": 128}),
        ("unroll 4", {"unrolling": 4}),
        ("unroll the loop by 8", {"unrolling": 8}),
        ("unrolling factor of 2", {"unrolling": 2}),
        ("4x unrolled", {"unrolling": 4}),
        ("do not unroll", {"unrolling": 1}),
        ("no unrolling, 64 threads", {"unrolling": 1, "threads": 64}),
        ("64-bit loads", {"bits": 64}),
        ("vectors of 2", {"vector": 2}),
        ("vector width 4", {"vector": 4}),
        ("use 512 threads and vectorise by 4", {"threads": 512, "vector": 4}),
        ("use 256 threads, not 512", {"threads": 256}),
        ("On line 9 of r0:\n    THREADS = 512  # sixteen warps\nwhy 512? try 256", {"threads": 256}),
        ("On line 9 of r0:\n    THREADS = 512\nuse 256, not 128", {"threads": 256}),
        ("On line 9 of r0:\n    THREADS = 512\nwhy 512?", {}),
        *(
            (f"On line 9 of r0:\n    THREADS = 512\n{said}", {"threads": 256})
            for said in (
                "256",
                "256?",
                "256, please",
                "256 instead of 512",
                "try 256",
                "Please use 256.",
                "make it 256",
                "= 256",
                "to 256",
                "set this to 256 for fewer registers",
                "go from 512 to 256",
                "why not 256?",
                "how about 256?",
                "use 128 or 256",
                "this needs 3 registers; try 256",
            )
        ),
        *(
            (f"On line 9 of r0:\n    THREADS = 512\n{said}", {})
            for said in (
                "256 rows are few",
                "this needs 3 registers",
                "use 3 registers fewer",
                "the loop runs up to 256",
                "do not use 256",
                "don't make it 256",
                "not 256",
                "why 256?",
                "2x too many",
                "use 0.5 of it",
            )
        ),
        ("On lines 9–10 of r0:\n    THREADS = 512\n    UNROLL = 1\nunroll by 4", {"unrolling": 4}),
        ("On line 10 of r0:\n    UNROLL = 1\n2 please\n\n64 threads", {"unrolling": 2, "threads": 64}),
        ("load float2", {"vector": 2}),
        ("scalar loads only", {"vector": 1}),
        ("a tile of 32", {"tile": 32}),
        ("tile size: 8", {"tile": 8}),
        ("16x16 tiles", {"tile": 16}),
        ("try vectorise-128 with 512 threads", {"threads": 512}),
        ("try vectorise 128 now", {}),
        ("make it faster", {}),
        ("", {}),
    ],
)
def test_settings_are_read_from_a_persons_words(words, expected):
    names = ("coalesced", "vectorise-128", "copies-128-bit")
    assert settings_in(words, names) == AskedSettings(**expected)


@pytest.mark.parametrize(
    ("wanted", "line", "done"),
    [
        ({"threads": 64}, "THREADS = 64  # eight warps", "64 threads a CTA"),
        ({"unrolling": 3}, "IN_FLIGHT = 3  # vectors in flight", "unrolling by 3"),
        ({"vector": 2}, "VEC = 2  # elements in 128 bits", "vectors of 2 elements"),
        ({"bits": 64}, "launch(x, math.gcd(x0 * x1, 2), parts=(sum_parts,))", "vectors of 64 bits"),
        ({"bits": 32}, "vector = math.gcd(x1, 1)", "vectors of 32 bits"),
        ({"tile": 32}, "TILE = 32", "a tile of 32 × 32"),
    ],
)
def test_a_setting_that_fits_changes_its_constant_alone(wanted, line, done):
    result = followed(SOURCE, AskedSettings(**wanted), element_bytes=4)
    assert (result.done, result.refused) == ((done,), ())
    before, after = SOURCE.splitlines(), result.source.splitlines()
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert line in changed
    assert len(changed) == (3 if "vector" in wanted or "bits" in wanted else 1)


@pytest.mark.parametrize(
    ("source", "wanted", "refused"),
    [
        (SOURCE, {"threads": 100}, "100 threads: a CTA has a power of two from 32 to 1024 here"),
        (SOURCE, {"threads": 16}, "16 threads: a CTA has a power of two from 32 to 1024 here"),
        (SOURCE, {"threads": 2048}, "2048 threads: a CTA has a power of two from 32 to 1024 here"),
        (BLOCKED, {"threads": 128}, "128 threads: this kernel's tile is laid out for those it has"),
        ("TILE = 16\n", {"threads": 64}, "64 threads a CTA: threads follow from the tile here"),
        (SOURCE, {"unrolling": 64}, "unrolling by 64: 1 to 16 turns are possible"),
        (BLOCKED, {"unrolling": 4}, "unrolling by 4: this kernel has no loop to unroll"),
        (SOURCE, {"vector": 3}, "vectors of 3 elements: 1 to 4 elements are possible, by powers of two"),
        (SOURCE, {"bits": 256}, "vectors of 256 bits: 1 to 4 elements are possible, by powers of two"),
        (SOURCE, {"bits": 16}, "vectors of 16 bits: 1 to 4 elements are possible, by powers of two"),
        (
            BLOCKED,
            {"vector": 2},
            "vectors of 2 elements: this kernel has none yet; ask for the strategy on vectors",
        ),
        (SOURCE, {"tile": 64}, "a tile of 64: 8, 16, 32 are possible"),
        (BLOCKED, {"tile": 8}, "a tile of 8 × 8: this kernel has no tile to choose"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused_with_its_reason(source, wanted, refused):
    result = followed(source, AskedSettings(**wanted), element_bytes=4)
    assert (result.source, result.done, result.refused) == (source, (), (refused,))


def test_a_width_in_bits_counts_elements_of_the_widest_dtype():
    assert "VEC = 8" in followed("VEC = 8\n", AskedSettings(bits=128), element_bytes=2).source
    assert "VEC = 4" in followed("VEC = 8\n", AskedSettings(bits=64), element_bytes=2).source


def test_the_answer_says_what_was_followed_and_what_was_not():
    both = followed(SOURCE, AskedSettings(threads=64, tile=64), element_bytes=4)
    assert sentence("64 threads, tiles of 64", both, "coalesced") == (
        "As asked: the strategy coalesced, 64 threads a CTA. "
        "Not followed: a tile of 64: 8, 16, 32 are possible."
    )
    nothing = followed(SOURCE, settings_in("make\nit faster"), element_bytes=4)
    assert sentence("make\nit faster", nothing, "") == (
        "The offline author cannot follow “make it faster”: it can follow threads of a CTA, vector width, "
        "unrolling, the extent of a tile, or a strategy by its name."
    )
    assert sentence(" ", nothing, "") == ""


CAN = (
    "The offline author can follow threads of a CTA, vector width, unrolling, the extent of a tile, or a "
    "strategy by its name."
)
PAIR = "import torch\ndef reference(x, y): return {value}\ndef get_inputs(): return [{inputs}]\n"
ONE = "import torch\ndef reference(x): return {value}\ndef get_inputs(): return [torch.rand(70, 260)]\n"
MATRICES, VECTOR = "torch.rand(40, 36), torch.rand(36, 50)", "torch.rand(40, 1024), torch.rand(1024, 1)"


@pytest.mark.slow
@pytest.mark.first(5)
@pytest.mark.parametrize(
    ("source", "step", "words"),
    [
        (ONE.format(value="torch.relu(x)"), -1, "64 threads, unroll by 3, float2"),
        (ONE.format(value="torch.softmax(x, 1)"), -1, "32 threads, vectors of 2"),
        (ONE.format(value="x.sum(0)"), -1, "64 threads, unroll by 3, 64-bit loads"),
        (PAIR.format(value="x @ y", inputs=MATRICES), 1, "tiles of 8"),
        (PAIR.format(value="x @ y", inputs=VECTOR), -1, "64 threads, unroll by 3"),
        (ONE.format(value="torch.relu(x)"), -1, "1024 threads, unroll by 16, scalar loads"),
        (ONE.format(value="torch.softmax(x, 1)"), 0, "32 threads, unroll by 5"),
        (ONE.format(value="x.mean()"), -1, "512 threads, unroll by 7"),
        (PAIR.format(value="x @ y", inputs=MATRICES), 1, "tiles of 32"),
    ],
    ids=lambda item: item.partition("return ")[2].partition("\n")[0] if str(item).startswith("import") else None,
)  # fmt: skip
def test_a_kernel_is_right_with_every_setting_that_is_accepted(offline_simulator, source, step, words):
    answer = offline_simulator.ask("asked", source, steps=(step,), words=words)
    assert "error" not in answer, answer["error"]
    (revision,) = answer["revisions"]
    assert revision["refused"] == []
    assert revision["verdict"] == "right", revision["source"]


def test_words_that_name_no_setting_are_named_beside_those_that_were_followed():
    words = "use 512 threads, and keep the row in registers; try vectorise-128"
    result = followed(SOURCE, settings_in(words, ["vectorise-128"]), 4)
    assert sentence(words, result, "", ["vectorise-128"]) == (
        f"As asked: 512 threads a CTA. Left out: “keep the row in registers”. {CAN}"
    )
    words = "64 threads; leave this one alone"
    result = followed(SOURCE, settings_in(words), 4)
    assert sentence(words, result, "") == (
        f"As asked: 64 threads a CTA. Left out: “leave this one alone”. {CAN}"
    )


def test_a_number_that_nobody_asks_for_is_told_as_a_remark():
    words = "On line 1 of r0:\n    THREADS = 256  # eight warps\n512 rows are few\n\nunroll by 2, and sing"
    result = followed(SOURCE, settings_in(words), 4)
    assert "THREADS = 256" in result.source
    remark = "Read as a remark, not as a value of THREADS: “512 rows are few”."
    assert sentence(words, result, "") == f"As asked: unrolling by 2. {remark} {CAN}"
    alone = words.partition("\n\n")[0]
    assert sentence(alone, followed(SOURCE, settings_in(alone), 4), "") == f"{remark} {CAN}"
