"""Names of a text get a prefix, so that two texts fit into one module."""

import ast

from cutegen_nb.authors.offline.matmul.prefix import with_prefix

TEXT = '''TILE = 128  # TILE rows


def gemm_kernel(a):
    """A kernel of TILE rows."""
    return a.TILE + TILE


def launch(a):
    é = gemm_kernel(a); return é
'''


def test_names_and_constants_are_renamed_wherever_they_are_used():
    made = with_prefix(TEXT, "product_2", "gemm")
    names = {node.name for node in ast.parse(made).body if isinstance(node, ast.FunctionDef)}
    assert names == {"product_2_kernel", "product_2_launch"}
    assert "PRODUCT_2_TILE = 128  # PRODUCT_2_TILE rows" in made
    assert "return a.TILE + PRODUCT_2_TILE" in made


def test_a_name_behind_letters_of_several_bytes_is_found():
    assert "é = product_2_kernel(a)" in with_prefix(TEXT, "product_2", "gemm")
