"""The tree of exceptions in the module's docstring is the tree of the classes."""

import re

from cutegen_nb.core import errors


def test_the_drawn_tree_is_that_of_the_classes():
    drawn, above = {}, {}
    for line in errors.__doc__.splitlines():
        found = re.match(r"([ │├└─]*)([A-Z]\w+)", line.removeprefix("    "))
        if found and hasattr(errors, found[2]):
            depth = len(found[1]) // 4
            above[depth] = found[2]
            drawn[found[2]] = above[depth - 1] if depth else "Exception"
    classes = {name: one for name, one in vars(errors).items() if isinstance(one, type)}
    assert drawn == {name: one.__bases__[0].__name__ for name, one in classes.items()}
