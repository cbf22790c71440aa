from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.analysis.problem.problem_text import name_from_path, problem_from_string, read_problem
from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.problem import ProblemForm

MODEL = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
INPUTS = "def get_inputs():\n    return [torch.rand(4)]\n"


def said(source: str) -> str:
    with pytest.raises(ProblemError) as caught:
        problem_from_string(source, name="p")
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_file_in_kernelbench_form_is_read_unchanged_and_named_after_itself(tmp_path):
    path = tmp_path / "19_ReLU.py"
    path.write_bytes((MODEL + INPUTS).replace("\n", "\r\n").encode())
    problem = read_problem(str(path))
    assert (problem.name, problem.form, problem.path) == ("ReLU", ProblemForm.KERNELBENCH, str(path))
    assert problem.source == path.read_bytes().decode()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("1_Square_matrix_multiplication_.py", "Square_matrix_multiplication"),
        ("10_3D_tensor.py", "problem_3D_tensor"),
        ("relu.py", "relu"),
        ("--.py", "problem"),
        ("my problem-2.py", "my_problem_2"),
        ("class.py", "class_"),
        ("42.py", "problem_42"),
        ("größe.py", "größe"),
    ],
)
def test_every_file_name_gives_an_identifier(path, name):
    assert name_from_path(path) == name
    assert name.isidentifier()


def test_one_public_function_with_inputs_is_the_reference():
    problem = problem_from_string(
        "def _half(x): return x / 2\ndef f(x): return _half(x)\n" + INPUTS, name="p"
    )
    assert (problem.form, problem.function) == (ProblemForm.FUNCTION, "f")


def test_of_several_functions_the_one_called_reference_is_it():
    source = "def other(x): return x\ndef reference(x): return x\nexample_inputs = [1]\n"
    assert problem_from_string(source, name="p").function == "reference"


def test_a_model_defined_in_a_condition_or_imported_counts():
    source = "try:\n    from m import Model\nexcept ImportError:\n    pass\nif True:\n    def get_inputs(): return []\n"
    assert problem_from_string(source, name="p").form is ProblemForm.KERNELBENCH


def test_the_source_is_never_executed():
    problem_from_string("raise SystemExit(3)\n" + MODEL + INPUTS, name="p")


def test_a_syntax_error_names_its_line_and_text():
    assert "line 2 (`class Model(:`)" in said("import torch\nclass Model(:\n")


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("", "neither a class Model nor a function"),
        (
            "class ModelNew:\n    pass\ndef f(x):\n    return x\n",
            "is a kernel, as it defines ModelNew and no Model",
        ),
        (MODEL, "defines Model but no get_inputs"),
        ("def f(x): return x\n", "neither get_inputs nor example_inputs"),
        ("def f(x): return x\ndef g(x): return x\n" + INPUTS, "2 functions (f, g)"),
        ("a\0b", "null bytes"),
        ("(" * 5000 + ")" * 5000, "does not parse"),
        ("\x7fELF\x01", "does not parse"),
    ],
)
def test_a_text_that_states_no_problem_gets_one_sentence(source, part):
    assert part in said(source)


def test_lines_of_a_cell_count_from_its_magic():
    broken = MODEL + "def get_inputs(:\n"
    line = broken.count("\n")
    with pytest.raises(ProblemError, match=f"at line {line} "):
        problem_from_string(broken, name="p")
    with pytest.raises(ProblemError, match=f"at line {line + 1} "):
        problem_from_string(broken, name="p", first_line=2)
    assert problem_from_string(MODEL + INPUTS, name="p", first_line=2).first_line == 2


@pytest.mark.parametrize("name", ["my name", "1x", "class", ""])
def test_a_name_that_is_no_identifier_is_refused(name):
    with pytest.raises(ProblemError, match="identifier"):
        problem_from_string(MODEL + INPUTS, name=name)


def test_missing_file_directory_and_binary_file_get_a_sentence_each(tmp_path):
    binary = tmp_path / "b.py"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, part in [
        (tmp_path / "none.py", "does not exist"),
        (tmp_path / "no" / "none.py", "nor does its folder"),
        (tmp_path, "is a directory"),
        (binary, "not UTF-8 text (byte 0 is 0xff)"),
        (Path("a\0b.py"), "cannot be read"),
    ]:
        with pytest.raises(ProblemError) as caught:
            read_problem(str(path))
        assert part in str(caught.value)


def test_reading_a_problem_imports_no_torch(tmp_path):
    code = (
        "import sys\nfrom cutegen_nb.analysis.problem.problem_text import problem_from_string\n"
        "problem_from_string('def f(x): return x\\nexample_inputs = [1]', name='p')\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
