"""``mma.sync`` in the shapes and types of sm_80 to sm_90 (PTX ISA, "Matrix multiply-accumulate operation using mma").

Each form runs twice where sums round: on whole numbers, where every order of additions gives the same bits, and on
numbers in [-1, 1], where results may differ by what the order can change.
"""

from __future__ import annotations

from suite.cases import BITS, VALUE, Case, Rule, case


def _listed(letter: str, count: int) -> str:
    return "{" + ", ".join([letter] if count == 1 else [f"{letter}{index}" for index in range(count)]) + "}"


def _product(name: str, kinds: tuple[str, str, str, str], counts: tuple[int, int, int], choices: tuple[str, str, str], label: str,
             rule: Rule) -> Case:  # fmt: skip
    a, b, c = counts
    kind_a, kind_b, kind_c, kind_d = kinds
    signature = " ".join(
        f"{kind}*{count}{':' + choice if choice else ''}"
        for kind, count, choice in zip((kind_a, kind_b, kind_c), counts, choices, strict=True)
    )
    text = f"{name} {_listed('d', c)}, {_listed('a', a)}, {_listed('b', b)}, {_listed('c', c)};"
    return case("tensor cores", f"{name}{label}", f"{signature} > {kind_d}*{c}", text, rule=rule)


def _floating(
    name: str, kinds: tuple[str, str, str, str], counts: tuple[int, int, int], depth: int
) -> list[Case]:
    """Whole numbers with equal bits, numbers in [-1, 1] within (depth + 1) roundings of the largest sum."""
    unit = {"f32": 2.0**-23, "f16x2": 2.0**-10, "f64": 2.0**-52}[kinds[3]]
    rule = Rule(kind="sum", scale=2 * (depth + 1) * unit)
    return [
        _product(name, kinds, counts, ("whole", "whole", "whole"), " whole", VALUE),
        _product(name, kinds, counts, ("unit", "unit", "unit"), " unit", rule),
    ]


def products() -> list[Case]:
    """Every form."""
    made: list[Case] = []
    for given in ("f16", "bf16"):
        pair = f"{given}x2"
        for depth, a, b in ((8, 2, 1), (16, 4, 2)):
            name = f"mma.sync.aligned.m16n8k{depth}.row.col.f32.{given}.{given}.f32"
            made += _floating(name, (pair, pair, "f32", "f32"), (a, b, 4), depth)
            if given == "f16":
                name = f"mma.sync.aligned.m16n8k{depth}.row.col.f16.f16.f16.f16"
                made += _floating(name, (pair, pair, pair, pair), (a, b, 2), depth)
        tiny = ("tiny24", "whole", "tiny24") if given == "f16" else ("tiny133", "whole", "tiny133")
        made.append(
            _product(
                f"mma.sync.aligned.m16n8k16.row.col.f32.{given}.{given}.f32",
                (pair, pair, "f32", "f32"),
                (4, 2, 4),
                tiny,
                " tiny",
                BITS,
            )
        )
    for rows in ("row.col", "row.row", "col.col", "col.row"):
        made += _floating(
            f"mma.sync.aligned.m8n8k4.{rows}.f32.f16.f16.f32", ("f16x2", "f16x2", "f32", "f32"), (2, 2, 8), 4
        )
    made += _floating(
        "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16", ("f16x2", "f16x2", "f16x2", "f16x2"), (2, 2, 4), 4
    )
    for depth, a, b in ((4, 2, 1), (8, 4, 2)):
        made += _floating(
            f"mma.sync.aligned.m16n8k{depth}.row.col.f32.tf32.tf32.f32",
            ("tf32", "tf32", "f32", "f32"),
            (a, b, 4),
            depth,
        )
    made.append(
        _product(
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
            ("tf32", "tf32", "f32", "f32"),
            (4, 2, 4),
            ("tiny133", "whole", "tiny133"),
            " tiny",
            BITS,
        )
    )
    for shape, counts, depth in (
        ("m8n8k4", (1, 1, 2), 4),
        ("m16n8k4", (2, 1, 4), 4),
        ("m16n8k8", (4, 2, 4), 8),
        ("m16n8k16", (8, 4, 4), 16),
    ):
        made += _floating(
            f"mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64", ("f64", "f64", "f64", "f64"), counts, depth
        )
    for left in ("e4m3", "e5m2"):
        for right in ("e4m3", "e5m2"):
            name = f"mma.sync.aligned.m16n8k32.row.col.f32.{left}.{right}.f32"
            made += _floating(name, (f"{left}x4", f"{right}x4", "f32", "f32"), (4, 2, 4), 32)
    return made + _whole()


def _whole() -> list[Case]:
    """Integers and single bits: exact."""
    made: list[Case] = []
    shapes = {
        "8": (("m8n8k16", (1, 1, 2)), ("m16n8k16", (2, 1, 4)), ("m16n8k32", (4, 2, 4))),
        "4": (("m8n8k32", (1, 1, 2)), ("m16n8k32", (2, 1, 4)), ("m16n8k64", (4, 2, 4))),
    }
    words = ("b32", "b32", "s32", "s32")
    choices = ("random", "random", "")
    for bits, forms in shapes.items():
        for shape, counts in forms:
            for left in "su":
                for right in "su":
                    for sat in ("", ".satfinite"):
                        name = f"mma.sync.aligned.{shape}.row.col{sat}.s32.{left}{bits}.{right}{bits}.s32"
                        made.append(_product(name, words, counts, choices, "", BITS))
    for shape, counts in (("m8n8k128", (1, 1, 2)), ("m16n8k128", (2, 1, 4)), ("m16n8k256", (4, 2, 4))):
        made += [
            _product(
                f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{join}.popc",
                words,
                counts,
                choices,
                "",
                BITS,
            )
            for join in ("xor", "and")
        ]
    return made
