"""Files are shortened to what is asked for."""

import ast

from cutegen_nb.authors.offline.outline import outlined

FILE = '''"""About the file."""

import cutlass

SIZE = 4


@cute.kernel
def far_kernel(mX: cute.Tensor):
    """Far from what matters."""
    first = 1
    second = 2


@cute.jit
def near(mX: cute.Tensor, n: cutlass.Int32, *, deep: int):
    """Near to what matters.

    With a second paragraph that is not shown.
    """
    return n


class Last:
    def method(self):
        return 1
'''


def test_a_file_that_fits_is_kept_without_its_docstring():
    assert outlined(FILE, (), len(FILE)) == FILE.partition("\n\n")[2].replace("\n\n\n", "\n\n")


def test_where_there_is_no_room_only_what_is_asked_for_stays():
    text = outlined(FILE, ("near", "*_kernel"), 320)
    assert "    return n\n" in text
    assert "def far_kernel(mX): ...  # Far from what matters.\n" in text
    assert "class Last: ...\n" in text
    assert "second = 2" not in text
    assert "SIZE = 4\n" in text
    ast.parse(text)


def test_the_order_of_the_patterns_decides_who_gets_the_room():
    text = outlined(FILE, ("*_kernel", "near"), 290)
    assert "second = 2" in text
    assert "def near(mX, n, deep): ...  # Near to what matters.\n" in text
