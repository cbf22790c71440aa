"""The guide is true for the installed version, and the right section is found for what went wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.authors.offline.examples import examples, kernel_of
from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.ports import FIRST_KERNEL, GuideRequest
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.prompting.guide import (
    BESIDE_EXAMPLE_CHARACTERS,
    FIRST_ASKED,
    LONGEST_CHARACTERS,
    CuTeGuide,
    query_words,
    sections_of,
)
from cutegen_nb.prompting.library import PromptLibrary, shipped_library

ROOT = Path(__file__).parents[2]
CHAPTERS = shipped_library().chapters()
BLOCK = re.compile(r"^```(python|python error)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECTIONS = [(name, section) for name, text in CHAPTERS.items() for section in sections_of(text)]
PROGRAMS = {
    f"{name.removesuffix('.md')}_{number}": code
    for name, text in CHAPTERS.items()
    for number, (kind, code) in enumerate(BLOCK.findall(text))
    if kind == "python"
}
ERRORS = {
    section.title: (re.search(r"^Says: `(.*)`$", section.text, re.MULTILINE).group(1), code)
    for _, section in SECTIONS
    for kind, code in BLOCK.findall(section.text)
    if kind == "python error"
}
KERNELS = {item.name: item for item in examples()}
EXCERPTS = [
    (name, piece)
    for text in CHAPTERS.values()
    for name, code in re.findall(r"^```python excerpt (\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for piece in code.split("...\n")
]
AROUND = """import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
{body}

@cute.jit
def run(mX: cute.Tensor, mY: cute.Tensor):
    kernel(mX, mY).launch(grid=(1, 1, 1), block=(32, 1, 1))


x = torch.randn(32, device="cuda")
y = torch.empty_like(x)
run(from_dlpack(x), from_dlpack(y))
"""
DRIVER = """import json
import runpy
import sys

said = {}
for path in sys.argv[1:]:
    try:
        runpy.run_path(path)
        said[path] = ""
    except BaseException as error:
        said[path] = f"{type(error).__name__}: {error}"
print("SAID", json.dumps(said))
"""


def _run(folder: Path, programs: dict[str, str]) -> tuple[dict[str, str], dict]:
    """Every program in one process on the simulator: what each said, by name, and the report."""
    (folder / "all.py").write_text(DRIVER)
    for name, code in programs.items():
        (folder / f"{name}.py").write_text(code)
    command = [sys.executable, "-m", "cutegen_nb", "simulate", "--json", "report.json", "all.py"]
    done = subprocess.run(
        [*command, *(f"{name}.py" for name in programs)],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert "SAID" in done.stdout, done.stdout + done.stderr
    said = json.loads(done.stdout.partition("SAID")[2].splitlines()[0])
    report = json.loads((folder / "report.json").read_text())
    return {Path(name).stem: text for name, text in said.items()}, report


@pytest.fixture(scope="module")
def guide_run(tmp_path_factory):
    """Programs and errors in one process, since an import of the DSL takes longer than most of them."""
    failing = {
        f"error_{n}": AROUND.format(body=_indented(code)) for n, (_, code) in enumerate(ERRORS.values())
    }
    return _run(tmp_path_factory.mktemp("guide"), {**PROGRAMS, **failing})


@pytest.fixture(scope="module")
def programs(guide_run):
    return guide_run


@pytest.fixture(scope="module")
def errors(guide_run):
    return {title: guide_run[0][f"error_{n}"] for n, title in enumerate(ERRORS)}


def _indented(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.splitlines())


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_compiles_and_is_right_on_the_simulator(programs, name):
    assert programs[0][name] == ""


@pytest.mark.parametrize(("name", "piece"), EXCERPTS)
def test_an_excerpt_stands_in_the_kernel_it_names(name, piece):
    """That kernel is judged on the simulator with the other worked examples."""
    assert piece.strip()
    assert piece in kernel_of(KERNELS[name])


def test_no_program_gives_a_finding(programs):
    assert programs[1]["findings"] == []
    assert len(programs[1]["launches"]) >= len(PROGRAMS) - 1  # one asks for layouts only


@pytest.mark.parametrize("title", ERRORS)
def test_the_compiler_says_what_the_guide_says_it_does(errors, title):
    plain = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", errors[title]).split())
    assert ERRORS[title][0] in plain


def test_each_section_on_an_error_shows_one_and_numbers_follow_one_another():
    numbers = [int(title.partition(".")[0]) for title in ERRORS]
    assert numbers == list(range(1, 12))


def asked(strategy: str = "", *, error: str = "", source: str = "", **bounds) -> GuideRequest:
    return GuideRequest(source=source, strategy=strategy, error=error, **bounds)


def strategy(name: str, **bounds) -> GuideRequest:
    """Request for a strategy of the library, in its own words."""
    statement = next(item.statement for item in shipped_library().strategies() if item.name == name)
    return asked(f"{name}: {statement} ", **bounds)


HALF_PRODUCT = {"classes": ("matrix product",), "dtypes": ("float16",)}
SINGLE_PRODUCT = {"classes": ("matrix product",), "dtypes": ("float32",)}
# A request, in the words of a strategy, a finding or the compiler, and a section that answers it.
ASKED = [
    (asked(error="`total` has type `Int32` on one path and `Float32` on another"), "1. A variable changes"),
    (asked(error="NameError in `run`: name 'value' is not defined"), "2. A variable that is first"),
    (asked(error="Early exit (break) is not allowed in `kernel`"), "3. return, break or continue"),
    (asked(error="Cannot use a Runtime value (Staged value) value as a list index"), "4. A run-time value where"),
    (asked(error="'cute.copy' op S ptr alignment (32 bits) does not meet requirement"), "5. The alignment"),
    (asked(error="'cute.copy' op expects same size in rank 0 but got srcShape: ((4),(1))"), "6. Source and target"),
    (asked(error="cannot vectorize copy to 4 elements (static strides must be 1)"), "7. A thread's values"),
    (asked(error="`range_constexpr()` requires all arguments to be Python integers"), "8. A run-time value"),
    (asked(error="expects coordinate to be weakly congruent to the layout"), "9. A coordinate"),
    (asked(error="Unsupported DSL type: vector<4xi1>"), "10. A register vector"),
    (asked(error="profile of input tuples doesn't match: 4 and (4, 1)"), "11. Two register vectors"),
    (asked(error="RACE: thread 3 reads a word of shared memory that thread 40 wrote, no barrier between"), "What compiles"),
    (asked(error="ASYNC_HAZARD: a cp.async has not been waited for"), "Asynchronous copies"),
    (asked(error="DEADLOCK: 32 threads wait at a barrier that 96 will never reach"), "What compiles"),
    (asked(error="WRONG_VALUES: the tail is wrong, the last 3 of 1000 elements were never written"), "What compiles"),
    (asked("vectorise-128: Move 128 bits a thread."), "Sixteen bytes a thread"),
    (asked("vectors-in-flight: Several independent vectors in flight."), "Several vectors in flight"),
    (asked("Double-buffer the tiles with cp.async."), "Asynchronous copies"),
    (asked("Swizzle the shared tile so that no bank conflicts are left."), "Swizzles"),
    (asked("Pad the shared tile by a word a row."), "Bank conflicts"),
    (asked("Multiply on tensor cores with ldmatrix and mma.", **HALF_PRODUCT), "The whole of a product"),
    (asked("Multiply on tensor cores, three TF32 products for one.", **SINGLE_PRODUCT), "Three TF32 products"),
    (asked("Fuse bias and activation into the epilogue.", **HALF_PRODUCT), "On the accumulators"),
    (asked("A warp a row: shuffles instead of shared memory.", classes=("softmax",)), "A warp a row"),
    (asked("A CTA for each row, partial results through shared memory.", classes=("norm",)), "A CTA a row"),
    (asked("Online softmax: one pass with a running maximum.", classes=("softmax",)), "Softmax in one pass"),
    (asked("Predicate the tail tiles."), "Tiles: coordinates"),
    (asked(source="tiled = cute.make_tiled_copy_tv(atom, threads, values)"), "Partitions by threads"),
    (asked("Compile once and keep it, dynamic sizes", source="compiled = cute.compile(run, mX)"), "Compile once"),
    (asked("one-cta-a-row: Let one CTA own a row.", classes=("softmax",), dtypes=("bool", "float32")), "Masks: bool"),
    (asked("one-cta-a-row: Let one CTA own a row.", classes=("softmax",)), "A CTA a row"),
    (asked("Transpose through a tile of shared memory"), "Bank conflicts"),
    (strategy("split-scan", classes=("scan",), dtypes=("float32",)), "A long row in a single pass"),
    (strategy("look-back", classes=("scan",), dtypes=("float32",)), "A long row in a single pass"),
    (strategy("split-k", **HALF_PRODUCT), "Split k"),
    (strategy("stream-k", **HALF_PRODUCT), "Split k"),
    (strategy("persistent-tiles", **HALF_PRODUCT, architecture="sm_90a"), "Persistent tiles"),
    (strategy("l2-raster", **HALF_PRODUCT), "Persistent tiles"),
    (strategy("reuse-the-window", classes=("pooling",), dtypes=("float32",)), "Sliding windows"),
    (strategy("slices-in-shared-memory", classes=("pooling",), dtypes=("float32",)), "Sliding windows"),
    (strategy("implicit-product", classes=("convolution",), dtypes=("float32",)), "The implicit product"),
    (strategy("gathered-tensor-cores", classes=("convolution",), dtypes=("float16",)), "The implicit product"),
    (strategy("flash-tiles", classes=("attention",), dtypes=("float16",)), "Flash attention"),
    (strategy("scores-stay-on-chip", classes=("attention",), dtypes=("float32",)), "Flash attention"),
    (strategy("skip-empty-tiles", classes=("attention",), dtypes=("float32",)), "Flash attention"),
    (asked("Keep data that is read once out of the cache: evict it first."), "Eviction hints"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "wanted"), ASKED, ids=lambda item: item if isinstance(item, str) else ""
)
def test_a_request_gets_the_section_that_answers_it(request_, wanted):
    titles = [section.title for section in CuTeGuide(CHAPTERS).search(request_)]
    assert any(title.startswith(wanted) for title in titles), titles


def test_sections_of_another_class_dtype_or_architecture_are_left_out():
    chapters = {
        "a.md": "# A\n\n## Zebras of rows\n<!-- classes: softmax -->\nzebra\n"
        "\n## Zebras in half\n<!-- dtypes: float16 -->\nzebra\n"
        "\n## Zebras of Hopper\n<!-- architectures: sm_90a -->\nzebra\n"
        "\n## Zebras gone wrong\n<!-- only: failures -->\nzebra\n"
    }
    guide = CuTeGuide(chapters)

    def found(**bounds) -> list[str]:
        return [section.title.removeprefix("Zebras ") for section in guide.search(asked("zebra", **bounds))]

    assert found() == ["of rows", "in half", "of Hopper"]
    assert found(classes=("norm",), dtypes=("float32",), architecture="sm_80") == []
    assert found(classes=("softmax",), dtypes=("float32",), architecture="sm_80") == ["of rows"]
    assert found(classes=("norm",), dtypes=("float16", "bool"), architecture="sm_90a") == [
        "in half",
        "of Hopper",
    ]
    assert found(classes=("norm",), dtypes=("bool",), architecture="sm_80", error="zebra") == ["gone wrong"]


def test_every_tag_of_the_guide_names_something_that_exists():
    classes = {item.value for item in WorkloadClass}
    for name, section in SECTIONS:
        assert section.tagged("classes") <= classes, (name, section.title)
        assert section.tagged("only") <= {"failures", "later"}, (name, section.title)


def test_a_wrong_tag_is_named_with_its_section():
    with pytest.raises(
        ConfigurationError, match=r"a.md, section 'Zebras': no tag 'class: softmax'; write one of"
    ):
        CuTeGuide({"a.md": "# A\n\n## Zebras\n<!-- class: softmax -->\nstripes\n"})


def test_the_text_is_bounded_and_the_same_each_time():
    guide = CuTeGuide(CHAPTERS)
    everything = " ".join(section.text for section in guide.sections)
    text = guide(asked(everything, error=everything, source=everything))
    assert 0 < len(text) <= LONGEST_CHARACTERS
    assert text == guide(asked(everything, error=everything, source=everything))
    assert "<!--" not in text


def test_a_worked_example_goes_first_and_leaves_less_room_for_sections():
    everything = " ".join(section.text for section in CuTeGuide(CHAPTERS).sections)
    text = CuTeGuide(CHAPTERS, lambda _: "## Worked example\n")(asked(everything))
    example, _, sections = text.partition("\n\n")
    assert example == "## Worked example"
    assert 0 < len(sections) <= BESIDE_EXAMPLE_CHARACTERS


def test_an_excerpt_of_the_worked_example_itself_is_not_shown_again():
    chapter = "# A\n\n## Zebras\nBefore.\n\n```python excerpt herd\na = 1\n...\nb = 2\n```\n\nBehind.\n"
    whole = CuTeGuide({"a.md": chapter})(asked("zebra"))
    assert whole == "## Zebras\nBefore.\n\n```python\na = 1\n...\nb = 2\n```\n\nBehind.\n"
    beside = CuTeGuide({"a.md": chapter}, lambda _: "a = 1\nc = 3\nb = 2\n")(asked("zebra"))
    assert beside.endswith("## Zebras\nBefore.\n\nBehind.\n")


def test_a_section_that_is_too_long_is_passed_over_for_the_next_that_fits():
    long = "zebra " * LONGEST_CHARACTERS
    guide = CuTeGuide({"a.md": f"# A\n\n## Zebra zebra\n{long}\n\n## Zebras\nzebra\n"})
    assert [section.title for section in guide.search(asked("zebra"))] == ["Zebras"]


@pytest.mark.parametrize("kind", ["convolution", "matrix product", "attention"])
def test_the_request_for_a_first_kernel_gets_no_chapter_on_tensor_cores(kind):
    words = f"{FIRST_ASKED}: {kind}."
    first = asked(words, wanted=FIRST_KERNEL, classes=(kind,), dtypes=("float32",))
    found = CuTeGuide(CHAPTERS).search(first)
    assert found
    assert not [section.title for section in found if "ensor cores" in section.chapter]
    assert "Compile once, call often" in [section.title for section in found]


@pytest.mark.parametrize("words", ["", "zzz qqq", "é ü", "``` ## # \x00"])
def test_nothing_is_added_where_nothing_fits(words):
    assert CuTeGuide(CHAPTERS)(asked(words)) == ""
    assert CuTeGuide({})(asked("vectors", source="cute.copy", error="error")) == ""


def test_a_person_s_own_chapter_stands_for_the_shipped_one(tmp_path):
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "01_layouts.md").write_text("# Mine\n\n## Our zebras\nstripes\n")
    chapters = PromptLibrary(own=tmp_path).chapters()
    assert chapters.keys() == CHAPTERS.keys()
    assert "Our zebras" in CuTeGuide(chapters)(asked("zebra stripes"))


def test_names_of_the_candidate_under_an_error_do_not_steer_the_search():
    found = "RACE: no barrier between them\n  line 53: `warp_row[lane]`\n    > 53 |     warp_row[lane] = softmax_max\n"
    words = query_words(asked(error=found))
    assert "barrier" in words
    assert not {"warp", "row", "lane", "softmax", "max"} & set(words)


def test_a_kernel_s_source_does_not_outweigh_the_strategy():
    source = "cute.make_tiled_copy_tv(a, b, c)"
    assert "make_tiled_copy_tv" in query_words(asked(source=source))
    assert "make_tiled_copy_tv" not in query_words(asked("Swizzle the tile.", source=source))
