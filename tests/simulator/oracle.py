"""Results that instructions must give, in exact fractions and Python integers: nothing of the machine's own."""

import itertools
import math
import random
import struct
from fractions import Fraction

import numpy as np

FORMAT = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}
REGISTER = {1: "%rs", 2: "%rs", 4: "%r", 8: "%rd"}


def width_of(kind):
    if kind == "pred" or (kind.endswith("x2") and not kind.startswith("e")):
        return 4
    if kind.endswith("x2"):
        return 2
    return max(1, int(kind.lstrip("bfsu")) // 8)


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def number(bits, kind):
    """The number that bits of a type mean: a Python int, or a float that holds it exactly."""
    size = width_of(kind)
    bits = int(bits)
    if kind == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    if kind.startswith("f"):
        return struct.unpack({2: "<e", 4: "<f", 8: "<d"}[size], bits.to_bytes(size, "little"))[0]
    return signed(bits, 8 * size) if kind.startswith("s") else bits


def rounded(value, kind, mode="rn"):
    """Bits of an exact fraction that is not zero, rounded once."""
    precision, least, greatest = FORMAT[kind]
    sign = int(value < 0) << (8 * width_of(kind) - 1)
    exponent = max(_exponent(abs(value)), least)
    whole, rest = divmod(abs(value) / (Fraction(2) ** (exponent - precision + 1)), 1)
    whole = int(whole)
    away = {"rz": False, "rm": bool(sign) and rest > 0, "rp": not sign and rest > 0}
    away["rn"] = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    whole += int(away[mode])
    if whole >> precision:
        whole, exponent = whole >> 1, exponent + 1
    infinity = (greatest - least + 2) << (precision - 1)
    if exponent > greatest:
        outward = mode in {"rn", "rm" if sign else "rp"}
        return sign | (infinity if outward else infinity - 1)
    if whole >> (precision - 1):
        return sign | ((exponent - least + 1) << (precision - 1)) | (whole & ((1 << (precision - 1)) - 1))
    return sign | whole


def _exponent(value):
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= value else exponent - 1


def bits_of(value, kind):
    """Bits of a float that the format holds: zeros, infinities, NaN."""
    precision, least, greatest = FORMAT[kind]
    sign = int(math.copysign(1, value) < 0) << (8 * width_of(kind) - 1)
    if math.isnan(value):
        return NAN.get(kind, 0)
    return sign | (((greatest - least + 2) << (precision - 1)) if math.isinf(value) else 0)


def float_result(name, values, kind, mode):
    """Bits of one arithmetic operation on floats; None for NaN of f64, whose payload is open."""
    plain = _special(name, values)
    if plain is None:
        exact = _exact(name, [Fraction(one) for one in values])
        if exact != 0:
            return rounded(exact, kind, mode)
        plain = _zero(name, values, mode)
    return None if math.isnan(plain) and kind == "f64" else bits_of(plain, kind)


def _exact(name, values):
    a, b, c = (*values, Fraction(0), Fraction(0))[:3]
    return {
        "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a / b,
        "fma": lambda: a * b + c, "rcp": lambda: 1 / a, "sqrt": lambda: _root(a), "cvt": lambda: a,
    }[name]()  # fmt: skip


def _root(value):
    """A square root to 700 bits, made inexact by its last bit where it is irrational."""
    scale = 700
    scaled = value * (1 << 2 * scale)
    root = math.isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(root * root) == scaled
    return Fraction(2 * root + (0 if exact else 1), 2 << scale)


def _special(name, values):
    """The result where an operand is NaN or infinite, or a divisor zero; None where all is finite."""
    if any(math.isnan(one) for one in values):
        return math.nan
    a, b, c = (*values, 0.0, 0.0)[:3]
    if name in {"div", "rcp"}:
        top, bottom = (a, b) if name == "div" else (1.0, a)
        if bottom == 0:
            if top == 0 or math.isnan(top):
                return math.nan
            return math.copysign(math.inf, math.copysign(1, top) * math.copysign(1, bottom))
    if name == "sqrt" and a < 0:
        return math.nan
    if not any(math.isinf(one) for one in values):
        return None
    if name == "fma":
        if not (math.isinf(a) or math.isinf(b)):
            return c
        product = _times(a, b)
        return math.nan if math.isnan(product) or (math.isinf(c) and c != product) else product
    if name == "sqrt":
        return a
    if name == "cvt":
        return a
    return {
        "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: _times(a, b),
        "div": lambda: math.nan if math.isinf(a) and math.isinf(b)
        else (_times(a, math.copysign(1, b)) if math.isinf(a) else _times(math.copysign(0, a), math.copysign(1, b))),
        "rcp": lambda: math.copysign(0.0, a),
    }[name]()  # fmt: skip


def _times(a, b):
    return math.nan if 0 in {a, b} and (math.isinf(a) or math.isinf(b)) else a * b


def _zero(name, values, mode):
    """The sign of an exact zero (IEEE 754, 6.3)."""
    a, b, c = (*values, 0.0, 0.0)[:3]
    if name in {"mul", "div"}:
        return math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b))
    if name in {"sqrt", "cvt"}:
        return math.copysign(0.0, a)
    if name == "fma":
        a, b = math.copysign(1, a) * math.copysign(1, b), c
    elif name == "sub":
        b = -b
    signs = {math.copysign(1, a), math.copysign(1, b)}
    if len(signs) == 1:
        return math.copysign(0.0, signs.pop())
    return -0.0 if mode == "rm" else 0.0


# -- operands ------------------------------------------------------------------------------------------------
def edges(kind):
    """Bit patterns where things go wrong: ends of every range, neighbours of one, infinities, NaN."""
    if kind not in FORMAT:
        bits = 8 * width_of(kind)
        top = 1 << (bits - 1)
        return [one & ((1 << bits) - 1) for one in (0, 1, 2, 3, 5, 8, 31, 32, 33, 63, 64, 255, 256, -1, -2, -32,
                                                    top, top - 1, top + 1, top >> 1, 0x5555555555555555)]  # fmt: skip
    precision, least, greatest = FORMAT[kind]
    fraction = precision - 1
    sign = 1 << (8 * width_of(kind) - 1)
    infinity = (greatest - least + 2) << fraction
    one = (1 - least) << fraction
    plain = [0, 1, 2, (1 << fraction) - 1, 1 << fraction, (1 << fraction) + 1, one, one + 1, one - 1,
             one + (1 << fraction), one - (1 << fraction), one | (1 << (fraction - 1)), one + 3, infinity - 1,
             infinity - 2, infinity, infinity + 1, infinity | (1 << (fraction - 1)), infinity | 0x15]  # fmt: skip
    return [*plain, *(sign | one for one in plain)]


def operands(kinds, count, seed):
    """``count`` tuples of bit patterns: all pairs of edges as far as they go, then random neighbours."""
    chance = random.Random(seed)
    if "f64" in kinds or "f32" in kinds or "f16" in kinds or "bf16" in kinds or len(kinds) > 1:
        found = list(itertools.product(*(edges(one) for one in kinds)))
    else:
        found = [(one,) for one in edges(kinds[0])]
    if len(found) > count // 2:
        found = chance.sample(found, count // 2)
    while len(found) < count:
        found.append(tuple(_related([chance.getrandbits(8 * width_of(one)) for one in kinds], kinds, chance)))
    return found


def _related(bits, kinds, chance):
    """Random operands, often of near exponents so that sums cancel and fractions meet."""
    how = chance.randrange(4)
    for index, kind in enumerate(kinds):
        if kind not in FORMAT:
            if how > 1:
                bits[index] &= (1 << chance.randint(1, 8 * width_of(kind))) - 1
            continue
        precision, least, _ = FORMAT[kind]
        fraction = precision - 1
        sign = bits[index] >> (8 * width_of(kind) - 1) << (8 * width_of(kind) - 1)
        low = bits[index] & ((1 << fraction) - 1)
        if how == 1:
            low &= -1 << chance.randrange(fraction)
        near = chance.randint(-3, 3) + (0 if how else chance.choice([0, fraction, -fraction, least + 3]))
        exponent = max(0, min(-least + 1 + near, 2 - 2 * least))
        if how < 3:
            bits[index] = sign | (exponent << fraction) | low
    return bits


# -- running -------------------------------------------------------------------------------------------------
def run(machine, template, kinds, output, columns):
    """Execute a template of PTX for every tuple of operands; gives the bits of the results.

    ``{0}``, ``{1}`` … stand for the operands, ``{d}`` for the result; registers from %r60 up are free.
    """
    count = len(columns)
    lines, names, arrays = [], [], []
    for index, kind in enumerate(kinds):
        size = width_of(kind)
        name = f"{REGISTER[size]}{10 + index}"
        lines.append(f"mad.wide.u32 %rd80, %r98, {size}, %rd{90 + index};")
        lines.append(f"ld.global.b{8 * size} {name}, [%rd80];")
        if kind == "pred":
            lines.append(f"setp.ne.b32 %p{10 + index}, {name}, 0;")
            name = f"%p{10 + index}"
        names.append(name)
        arrays.append(machine.align(np.array([one[index] for one in columns], f"u{size}")))
    size = width_of(output)
    shown = f"{REGISTER[size]}50"
    result = "%p50" if output == "pred" else shown
    lines.append(template.format(*names, d=result))
    if output == "pred":
        lines.append("selp.b32 %r50, 1, 0, %p50;")
    lines.append(f"mad.wide.u32 %rd81, %r98, {size}, %rd{90 + len(kinds)};")
    lines.append(f"st.global.b{8 * size} [%rd81], {shown};")
    index = "mov.u32 %r97, %ctaid.x; mov.u32 %r96, %ntid.x; mad.lo.s32 %r98, %r97, %r96, %r99;"
    guard = f"setp.ge.u32 %p99, %r98, {count}; @%p99 ret;"
    text = machine.kernel(index + guard + "\n".join(lines), parameters=len(kinds) + 1)
    results = machine.align(np.zeros(count, f"u{size}"))
    machine.launch(text, grid=-(-count // 128), block=128, arrays=[*arrays, results])
    return [int(one) for one in results]
