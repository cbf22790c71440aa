"""Classes of compiled instructions by the work they do: one table for SASS and one for PTX."""

from __future__ import annotations

from cutegen_nb.core.profile import CompiledCode

TENSOR, OTHER = "tensor cores", "other"
GLOBAL_LOADS, GLOBAL_STORES, COPIES = "global loads", "global stores", "asynchronous copies"
_SASS: dict[str, str] = {
    name: kind
    for kind, names in (
        (TENSOR, "HMMA IMMA DMMA BMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA"),
        ("fp32", "FFMA FADD FMUL FMNMX FSEL FSET FSETP FSWZADD FCHK"),
        ("fp64", "DFMA DADD DMUL DSETP"),
        ("half and packed", "HFMA2 HADD2 HMUL2 HSET2 HSETP2 HMNMX2 VHMNMX"),
        ("special functions", "MUFU"),
        ("conversions", "F2F F2I I2F I2FP F2FP FRND I2I I2IP F2IP"),
        ("integer and logic", "IADD3 IADD VIADD IMAD LEA LOP3 SHF PRMT ISETP IABS IMNMX VIMNMX VIMNMX3 SEL"),
        ("integer and logic", "VIADDMNMX VABSDIFF VABSDIFF4 SGXT BMSK IDP FLO POPC BREV PLOP3 P2R R2P"),
        (
            "uniform integers",
            "UIADD3 ULEA ULOP3 USHF UIMAD UISETP UPLOP3 UPRMT USEL UFLO UPOPC UVIRTCOUNT",
        ),
        ("moves, constants, parameters", "MOV UMOV CS2R S2R S2UR R2UR LDC ULDC LDCU MOVM"),
        (GLOBAL_LOADS, "LDG LD"),
        (GLOBAL_STORES, "STG ST"),
        (COPIES, "LDGSTS LDGDEPBAR UTMALDG UTMASTG UTMACMDFLUSH UTMACCTL UBLKCP"),
        ("shared loads", "LDS LDSM"),
        ("shared stores", "STS STSM"),
        ("local memory", "LDL STL"),
        ("tensor memory", "LDTM STTM UTCATOMSWS UTCBAR"),
        ("atomics", "ATOM ATOMG ATOMS RED REDG"),
        (
            "barriers and fences",
            "BAR DEPBAR MEMBAR ERRBAR SYNCS FENCE WARPSYNC WARPGROUP CCTL PREEXIT ACQBULK",
        ),
        ("between lanes", "SHFL VOTE VOTEU MATCH REDUX CREDUX ELECT"),
        ("branches", "BRA BRX BSSY BSYNC BREAK CALL RET EXIT BPT NANOSLEEP PMTRIG USETMAXREG"),
    )
    for name in names.split()
}
"""SASS operations to their class."""
_PTX: dict[str, str] = {
    name: kind
    for kind, names in (
        (TENSOR, "mma wgmma wmma tcgen05"),
        ("special functions", "ex2 lg2 sin cos rcp rsqrt sqrt tanh"),
        ("conversions", "cvt cvta"),
        ("integer and logic", "and or xor not shl shr shf lop3 prmt bfe bfi brev clz popc bfind sad rem"),
        ("integer and logic", "dp4a dp2a mul24 mad24 bmsk"),
        ("moves, constants, parameters", "mov ld.param ld.const"),
        (GLOBAL_LOADS, "ld ld.global ldu ldu.global"),
        (GLOBAL_STORES, "st st.global"),
        (COPIES, "cp cp.async"),
        ("shared loads", "ld.shared ldmatrix"),
        ("shared stores", "st.shared stmatrix"),
        ("local memory", "ld.local st.local"),
        ("atomics", "atom red"),
        ("barriers and fences", "bar barrier mbarrier fence membar griddepcontrol"),
        ("between lanes", "shfl vote match redux elect activemask"),
        ("branches", "bra brx ret exit trap call nanosleep setmaxnreg"),
    )
    for name in names.split()
}
"""PTX operations, with the state space where it matters, to their class."""
_TYPED = {
    "f32": "fp32", "f32x2": "fp32", "f64": "fp64", "f16": "half and packed", "f16x2": "half and packed",
    "bf16": "half and packed", "bf16x2": "half and packed",
}  # fmt: skip
"""Types of PTX arithmetic to the class of the pipe; types that are not listed are integers."""
_ARITHMETIC = frozenset(
    {"add", "sub", "mul", "fma", "mad", "min", "max", "abs", "neg", "set", "setp", "selp", "slct", "div"}
    | {"testp", "copysign"}
)
"""PTX operations whose type decides the pipe that they run on."""


def class_of(name: str, language: str) -> str:
    """Return the class of one instruction: ``fp32``, ``global loads``; ``other`` for one in no table."""
    parts = name.split(".")
    if language != "PTX":
        return _SASS.get(parts[0], OTHER)
    if parts[0] in _ARITHMETIC:
        return _TYPED.get(parts[-1], "integer and logic")
    return _PTX.get(".".join(parts[:2])) or _PTX.get(parts[0], OTHER)


def by_class(code: CompiledCode) -> dict[str, dict[str, int]]:
    """Return a kernel's instruction counts by class and by name, the commonest class first."""
    found: dict[str, dict[str, int]] = {}
    for name, amount in code.instructions.items():
        found.setdefault(class_of(name, code.language), {})[name] = amount
    return dict(sorted(found.items(), key=lambda item: (-sum(item[1].values()), item[0])))
