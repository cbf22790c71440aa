from __future__ import annotations

import subprocess
import sys

import pytest

import cutegen_nb


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, cutegen_nb; cutegen_nb.Session; cutegen_nb.problem_from_string\n"
        "print(sorted({'torch', 'IPython', 'matplotlib', 'pandas', 'openai', 'cutlass', 'anywidget'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize("name", cutegen_nb.__all__)
def test_every_public_name_is_there_with_its_words(name: str):
    assert getattr(cutegen_nb, name).__doc__
    assert name in dir(cutegen_nb)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Kernel'"):
        _ = cutegen_nb.Kernel
