"""A program's exception as it is told: its own frames, their place, and one sentence."""

import os
import sys
import traceback

import pytest

from cutegen_nb.core.codec import decode
from cutegen_nb.simulator.host.runtime import UnansweredCall
from cutegen_nb.simulator.ptx.faults import OutOfBounds
from cutegen_nb.simulator.script.traceback import is_own, own_frames, place_of, sentence_of

PROGRAM = """
import json

def parsed():
    return json.loads("{")

def main():
    try:
        parsed()
    except ValueError as cause:
        raise KeyError("key") from cause
"""


def raised(call):
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - the exception is the result
        return error
    return None


@pytest.fixture
def program(tmp_path):
    path = str(tmp_path / "program.py")
    members = {}
    exec(compile(PROGRAM, path, "exec"), members)
    return path, members


def test_frames_of_python_packages_and_ours_are_not_the_program_s(program):
    assert is_own(program[0])
    assert is_own(__file__)
    for path in (os.__file__, pytest.__file__, sys.modules[is_own.__module__].__file__, "<string>"):
        assert not is_own(path)


def test_a_traceback_keeps_the_program_s_frames_also_of_the_cause(program):
    path, members = program
    error = own_frames(raised(members["main"]))
    here, main = traceback.extract_tb(error.__traceback__)
    assert (here.filename, main.filename, main.name) == (__file__, path, "main")
    assert [one.name for one in traceback.extract_tb(error.__cause__.__traceback__)] == ["main", "parsed"]
    assert place_of(error) == "program.py:11"
    assert place_of(error.__cause__) == "program.py:5"


def test_a_traceback_without_such_frames_loses_ours_only():
    members = {"decode": decode}
    text = "def call():\n    try:\n        decode(int, 'x')\n    except Exception as error:\n        return error"
    exec(compile(text, "<string>", "exec"), members)
    error = own_frames(members["call"]())
    assert [one.filename for one in traceback.extract_tb(error.__traceback__)] == ["<string>"]
    assert not place_of(error)


def test_the_place_of_a_syntax_error_is_in_the_file_that_has_it(tmp_path):
    path = str(tmp_path / "broken.py")
    assert place_of(raised(lambda: compile("x = (\n", path, "exec"))) == "broken.py:1"


def missing_tvm_ffi():
    return ModuleNotFoundError("No module named 'tvm_ffi'", name="tvm_ffi")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("key"), "The program raised KeyError: 'key' at program.py:2."),
        (ValueError(), "The program raised ValueError at program.py:2."),
        (
            ValueError("\x1b[31mred\x1b[0m\n  lines"),
            "The program raised ValueError: red lines at program.py:2.",
        ),
        (KeyboardInterrupt(), "The program was interrupted at program.py:2."),
        (
            MemoryError(),
            "The program ran out of this machine's memory at program.py:2: MemoryError. Give it smaller sizes.",
        ),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            (
                "The program ran out of this machine's memory at program.py:2: RuntimeError: DefaultCPUAllocator: "
                "can't allocate memory. Give it smaller sizes."
            ),
        ),
        (UnansweredCall("x"), "The program's call at program.py:2 could not be answered."),
        (OutOfBounds("x"), "The program's launch at program.py:2 was stopped: out-of-bounds."),
        (
            missing_tvm_ffi(),
            (
                "The program raised ModuleNotFoundError: No module named 'tvm_ffi' at program.py:2. "
                "`--enable-tvm-ffi` needs no package here, but this program imports it by itself: run `pip install "
                "apache-tvm-ffi`, which the DSL needs on a GPU too."
            ),
        ),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, BaseException) else "",
)
def test_an_exception_is_described_in_one_sentence(error, said):
    assert sentence_of(error, "program.py:2") == said


def test_a_long_message_is_cut_and_no_place_is_no_place():
    said = sentence_of(ValueError("x" * 1000), "")
    assert said == f"The program raised ValueError: {'x' * 399}…."
