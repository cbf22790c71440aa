"""Compiled code as the panel shows it beside the source."""

from __future__ import annotations

import json
from dataclasses import replace

from cutegen_nb.core.compiled.listing import CodeListing, CodeRow, packed_rows
from cutegen_nb.core.profile import Counters, LineCounters
from cutegen_nb.notebook.review.code_view import code_view
from cutegen_nb.testing import examples

SOURCE = "def kernel(x):\n    return x[0]  # \u202e\n"
ROWS = (
    CodeRow("{"),
    CodeRow("    ld.global.b32 %r1, [%rd1];", 2, 64),
    CodeRow("    ret; // </script>", 0, 2),
)


def evaluated(*listings, rows=ROWS):
    found = examples.passed(128)
    (launch,) = found.profile.launches
    counts = Counters(warp_instructions=64, gmem_load_sectors=128, gmem_ideal_sectors=64, gmem_requests=4)
    launch = replace(launch, lines=(LineCounters(file="candidate.py", line=2, counters=counts),))
    code = listings or (CodeListing(kernel="kernel", language="PTX", packed=packed_rows(rows)),)
    return replace(found, code=code, profile=replace(found.profile, launches=(launch,)))


def test_source_and_code_are_shown_with_the_counts_of_their_lines():
    shown = code_view("r0", SOURCE, evaluated())
    assert "".join(text for _, text in shown["source"][1]) == "    return x[0]  # ⟨U+202E⟩"
    (kernel,) = shown["kernels"]
    assert (kernel["name"], kernel["hottest"], kernel["counts"]) == ("kernel", 2, "simulated counts")
    assert [one["title"] for one in kernel["columns"]] == ["Instr.", "Global"]
    assert kernel["figures"][2]["cells"] == [("64", 1.0), ("4.10 kB", 1.0)]
    assert "128 sectors of global memory (64 needed)" in kernel["figures"][2]["full"]
    (listing,) = kernel["listings"]
    assert listing == {
        "language": "PTX",
        "note": "",
        "text": [row.text for row in ROWS],
        "lines": [0, 2, 0],
        "executions": [-1, 64, 2],
    }
    json.dumps(shown)


def test_kernels_of_a_gpu_have_code_and_no_counts():
    both = [
        CodeListing(kernel=kernel, language=language, packed=packed_rows(ROWS), note=f"Note of {language}.")
        for kernel in ("one", "two")
        for language in ("PTX", "SASS")
    ]
    shown = code_view("r0", SOURCE, replace(evaluated(*both), profile=None))
    assert [kernel["name"] for kernel in shown["kernels"]] == ["one", "two"]
    assert [kernel["columns"] for kernel in shown["kernels"]] == [[], []]
    assert [one["note"] for one in shown["kernels"][1]["listings"]] == ["Note of PTX.", "Note of SASS."]


def test_a_kernel_has_its_name_in_the_source():
    long = "kernel_cutlass_kernel_tensorptrf32gmemo1_tensorptrf32gmemo1__0"
    rows = packed_rows([CodeRow(f"    ld.param.b64 %rd1, [{long}_param_0];", 1)])
    shown = code_view("r0", SOURCE, evaluated(CodeListing(kernel=long, language="PTX", packed=rows)))
    (kernel,) = shown["kernels"]
    assert kernel["name"] == "kernel"
    assert kernel["listings"][0]["text"] == ["    ld.param.b64 %rd1, [kernel_param_0];"]


def test_damaged_code_is_said_in_a_sentence():
    shown = code_view("r0", SOURCE, evaluated(CodeListing(kernel="kernel", language="PTX", packed="00000")))
    (listing,) = shown["kernels"][0]["listings"]
    assert listing["text"] == []
    assert listing["note"].startswith("The code cannot be shown: the listing of kernel is damaged")
