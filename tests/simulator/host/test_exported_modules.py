"""Functions exported to files, loaded in the same program, in a later one, and from a shared library."""

import shutil

import pytest

PROGRAM = "exports"


def test_an_exported_function_is_loaded_in_the_same_program(outcome):
    assert outcome == "ok", outcome


@pytest.fixture(scope="module")
def files(simulator_on, tmp_path_factory):
    """Object files that an earlier program exported, with TVM-FFI and without."""
    folder = tmp_path_factory.mktemp("exported")
    simulator_on("sm_80").run("exports_earlier", folder)
    return folder


def loaded(simulator_on, *arguments):
    return simulator_on("sm_80").run("exports_later", *arguments)


def test_a_later_program_loads_what_was_exported_with_tvm_ffi(simulator_on, files):
    assert loaded(simulator_on, files / "with.o", "with") == {"right": True, "launches": 1}


def test_a_later_program_is_refused_what_was_exported_without_it(simulator_on, files):
    found = loaded(simulator_on, files / "without.o", "without")
    assert found["refused"].startswith(
        "The program loaded without.o, which was exported by another process, without TVM-FFI."
    )


def test_a_shared_library_is_answered_from_the_object_file_beside_it(simulator_on, files, tmp_path):
    """The library holds the machine code of the kernels, as a linker leaves it, and nothing of ours."""
    library = tmp_path / "library.so"
    content = (files / "with.o").read_bytes()
    library.write_bytes(content[: content.rindex(b"\0cutegen-nb simulator\0")])
    found = loaded(simulator_on, library, "with", "alone")
    assert "holds no function that was exported on the simulator" in found["refused"]
    shutil.copy(files / "with.o", tmp_path)
    assert loaded(simulator_on, library, "with") == {"right": True, "launches": 1}


def test_a_file_that_was_cut_off_is_refused(simulator_on, files, tmp_path):
    cut = tmp_path / "cut.o"
    cut.write_bytes((files / "with.o").read_bytes()[:-20])
    assert "holds no function" in loaded(simulator_on, cut, "with")["refused"]
