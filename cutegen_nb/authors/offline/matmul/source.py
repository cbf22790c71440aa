"""Python file of a matrix product: kernel, launch and ``ModelNew``, in a chosen variant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cutegen_nb.authors.offline.constructor import Constructor
from cutegen_nb.authors.offline.expressions.expressions import ValueType, body
from cutegen_nb.authors.offline.graph.reading import identifier, state_text
from cutegen_nb.authors.offline.matmul.graph import MatrixProduct, read_product
from cutegen_nb.authors.offline.matmul.prefix import with_prefix
from cutegen_nb.authors.offline.matmul.sizes import Sizes
from cutegen_nb.authors.offline.templates import IMPORTS, render
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts

_TAKEN = frozenset({"D", "mA", "mB", "mD", "mW"})
"""Names of the product's own tensors in the generated file."""

HOPPER_IMPORTS = (
    "import cutlass.pipeline as pipeline",
    "import cutlass.utils.hopper_helpers as sm90",
    "from cutlass.tensor_utils import LayoutEnum",
)
"""Import lines of kernels that load by TMA and multiply by wgmma."""
_MORE_IMPORTS = {
    "tensor": ("import math",),
    "wgmma": HOPPER_IMPORTS,
    "three_products": HOPPER_IMPORTS,
    "split_in_registers": HOPPER_IMPORTS,
}
"""Imports that a template needs besides those of every kernel file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulVariant:
    """Optimisation level of the kernel."""

    level: str = "naive"
    """Name of the template: ``naive``, ``tiled``, ``blocked``, ``tensor``, ``wgmma``, ``three_products``,
    ``split_in_registers``, ``few_rows``, or ``rows`` for matrix-vector products."""
    vectors: bool = False
    """True for 128-bit copies where alignment permits."""
    pipelined: bool = False
    """True if the next tiles are loaded while the present one is multiplied (several stages)."""
    split: bool = False
    """True if several CTAs share the depth of one tile (split-K)."""
    skipping: bool = False
    """True if tiles that the epilogue sets to 0 throughout are not multiplied."""
    unrolled: bool = False
    """True if a thread keeps several vectors in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Variables for the tensors in ``forward``."""

    signature: tuple[str, ...]
    """Argument names in order, without ``self``."""
    texts: dict[str, str]
    """Variable of each input and parameter, by name in the graph."""
    bindings: dict[str, str]
    """Parameter of each variable: ``self.gemm.bias``."""


def names_of(graph: Graph) -> Names:
    """Choose different variables for the inputs and parameters of a graph."""
    scalars = dict(graph.scalars)
    inputs = iter(graph.inputs)
    texts: dict[str, str] = {}
    signature = []
    for position in range(len(graph.inputs) + len(scalars)):
        if position in scalars:
            signature.append(f"number{position}")
            continue
        value = next(inputs)
        texts[value.name] = _fresh(identifier(value.name), texts)
        signature.append(texts[value.name])
    bindings = {}
    for value in graph.parameters:
        name = _fresh(identifier(value.path.rpartition(".")[2] or value.name), texts)
        texts[value.name] = name
        bindings[name] = state_text(value.path)
    return Names(signature=tuple(signature), texts=texts, bindings=bindings)


def _fresh(name: str, texts: Mapping[str, str]) -> str:
    while name in _TAKEN or name in texts.values():
        name += "_"
    return name


def product_of(facts: ProblemFacts) -> MatrixProduct:
    """Read the problem as one product. Raises Declined, naming what is not supported."""
    return read_product(facts.full.graph, facts.scaled.graph, names_of(facts.full.graph).texts)


def source_of(facts: ProblemFacts, variant: MatmulVariant, *, built: Constructor, title: str) -> str:
    """Write the whole file, with the constructor `built` from the problem. Raises Declined."""
    names = names_of(facts.full.graph)
    product = read_product(facts.full.graph, facts.scaled.graph, names.texts)
    lines, values = body({"result": product.result})
    text = " ".join([product.a, product.b, product.like, *(size.text for size in product.output_sizes),
                     *(extra.text for extra in product.extras)])  # fmt: skip
    inputs = facts.full.graph.inputs
    written_for = ", ".join(f"{names.texts[value.name]} {value.spec.shape}" for value in inputs)
    mentioned = set(re.findall(r"\w+", text))
    return render(
        "matmul/module",
        title=title, written_for=written_for,
        imports=_imports(built.imports, variant.level), definitions=built.definitions, init=built.init,
        signature=", ".join(("self", *names.signature)),
        bindings=[f"{name} = {path}.detach()" for name, path in names.bindings.items() if name in mentioned],
        **_values(product, variant, lines, values["result"]),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductFunction:
    """Function that computes a product in a module with other kernels."""

    name: str
    """Name of the function; every name at module level begins with it."""
    parameters: tuple[str, ...]
    """Tensors that the function takes, in order."""
    lines: tuple[str, ...]
    """Statements of the epilogue, beside those that read the product's extras."""
    value: str
    """Expression of an output element."""


def function_of(product: MatrixProduct, variant: MatmulVariant, function: ProductFunction) -> str:
    """Write the kernels of a product and the function that launches them."""
    text = render(
        "matmul/function",
        name=function.name, parameters=", ".join(function.parameters),
        **_values(product, variant, function.lines, function.value),
    )  # fmt: skip
    return with_prefix(text, function.name, "product")


def more_imports(variant: MatmulVariant) -> tuple[str, ...]:
    """Import lines that a variant needs besides those of every kernel file."""
    return _MORE_IMPORTS.get(variant.level, ())


def _values(
    product: MatrixProduct, variant: MatmulVariant, lines: Sequence[str], value: str
) -> dict[str, object]:
    """Values for the templates of the kernels and of their launch; `lines` and `value` are the epilogue."""
    extras = [extra.name for extra in product.extras]
    used = {extra.register for extra in product.extras}
    assert len(used) == len(extras), "every extra has a register of its own"
    loads = [f"{x.register} = {x.name}[m, n, l].to(cutlass.{ValueType.F32.value})" for x in product.extras]
    return {
        "level": variant.level, "vectors": variant.vectors, "pipelined": variant.pipelined,
        "split": variant.split, "unrolled": variant.unrolled, "tf32": product.operand_dtype == "float32",
        "outside": product.triangle.outside if variant.skipping and product.triangle else "",
        "extras": extras,
        "extra_parameters": "".join(f", {name}: cute.Tensor" for name in extras),
        "extra_torch_parameters": "".join(f", {name}: torch.Tensor" for name in extras),
        "extra_arguments": "".join(f", {name}" for name in extras),
        "extra_views": product.extras,
        "lines": [*loads, *lines], "value": _typed(value),
        "shape": _tuple(product.output_sizes), "dtype": product.output_dtype, "like": product.like,
        "a": product.a, "b": product.b, "d": product.d,
    }  # fmt: skip


def _imports(built: tuple[str, ...], level: str) -> list[str]:
    """Import lines of the file: modules first, as isort has them."""
    lines = {*IMPORTS, *built, *_MORE_IMPORTS.get(level, ())}
    return sorted(lines, key=lambda line: (line.startswith("from"), line))


def _typed(value: str) -> str:
    """`value` as the DSL's Float32: a selection alone has no type that converts."""
    return value if value == "acc" else f"cutlass.Float32({value})"


def _tuple(sizes: Sizes) -> str:
    """Text between a tuple's parentheses."""
    return ", ".join(size.text for size in sizes) + ("," if len(sizes) == 1 else "")


def taken_to(variant: MatmulVariant, step: Mapping[str, object]) -> MatmulVariant:
    """Return the variant after one more step."""
    return replace(variant, **step)  # type: ignore[arg-type]
