"""Operations between threads: votes, shuffles, matches, reductions, barriers, and branches that diverge."""

from __future__ import annotations

from suite.cases import Case, case

_ALL_LANES = "0xffffffff"
_WITH_PREDICATE = ".reg .pred p;\n{};\nselp.b32 d1, 1, 0, p;"


def warps() -> list[Case]:
    """Vote, match, reduction, shuffle, active mask, election."""
    rows: list[tuple[str, str, str]] = []
    for mode in ("all", "any", "uni"):
        rows.append(
            (f"vote.sync.{mode}.pred", "pred:flags > pred", f"vote.sync.{mode}.pred d, a, {_ALL_LANES};")
        )
        rows.append(
            (
                f"vote.sync.{mode}.pred negated",
                "pred:flags > pred",
                f"vote.sync.{mode}.pred d, !a, {_ALL_LANES};",
            )
        )
    rows.append(("vote.sync.ballot.b32", "pred > b32", f"vote.sync.ballot.b32 d, a, {_ALL_LANES};"))
    for bits in (32, 64):
        rows.append(
            (f"match.any.sync.b{bits}", f"b{bits}:few > b32", f"match.any.sync.b{bits} d, a, {_ALL_LANES};")
        )
        rows.append((f"match.all.sync.b{bits}", f"b{bits}:flags > b32*2",
                     _WITH_PREDICATE.format(f"match.all.sync.b{bits} d0|p, a, {_ALL_LANES}")))  # fmt: skip
    for kind, names in (
        ("u32", ("add", "min", "max")),
        ("s32", ("add", "min", "max")),
        ("b32", ("and", "or", "xor")),
    ):
        rows += [
            (f"redux.sync.{name}.{kind}", f"{kind} > {kind}", f"redux.sync.{name}.{kind} d, a, {_ALL_LANES};")
            for name in names
        ]
    for mode, whole, parts in (
        ("up", "0x0", "0x1800"),
        ("down", "0x1f", "0x181f"),
        ("bfly", "0x1f", "0x181f"),
        ("idx", "0x1f", "0x181f"),
    ):
        for label, limit in (("", whole), (" in parts", parts)):
            text = _WITH_PREDICATE.format(f"shfl.sync.{mode}.b32 d0|p, a, b, {limit}, {_ALL_LANES}")
            rows.append((f"shfl.sync.{mode}.b32{label}", "b32 u32:below32 > b32*2", text))
    rows.append(("shfl.sync.idx.b32 constant", "b32 > b32", f"shfl.sync.idx.b32 d, a, 5, 31, {_ALL_LANES};"))
    rows.append(("shfl.sync.idx.b32 clamped", "b32 u32:below32 u32:random > b32*2",
                 _WITH_PREDICATE.format(f"and.b32 c, c, 0x1f1f;\nshfl.sync.idx.b32 d0|p, a, b, c, {_ALL_LANES}")))  # fmt: skip
    rows.append(("elect.sync", "b32 > b32*2", _WITH_PREDICATE.format(f"elect.sync d0|p, {_ALL_LANES}")))
    rows.append(("activemask.b32", "b32 > b32", "activemask.b32 d;"))
    return [case("warps", *row) for row in rows] + _parts_of_a_warp()


def _parts_of_a_warp() -> list[Case]:
    """Lower and upper half of a warp take different branches and each synchronise by their own mask."""

    def branched(low: str, high: str) -> str:
        return (
            f".reg .pred q;\nsetp.lt.u32 q, lane, 16;\n@q bra LOW;\n{high}\nbra JOINED;\nLOW:\n{low}\nJOINED:\n"
            f"bar.warp.sync {_ALL_LANES};"
        )

    rows = [
        ("vote.sync.ballot.b32 halves", "pred > b32", "vote.sync.ballot.b32 d, a, {};"),
        ("redux.sync.add.s32 halves", "s32 > s32", "redux.sync.add.s32 d, a, {};"),
        ("redux.sync.max.u32 halves", "u32 > u32", "redux.sync.max.u32 d, a, {};"),
        ("match.any.sync.b32 halves", "b32:few > b32", "match.any.sync.b32 d, a, {};"),
        ("shfl.sync.bfly.b32 halves", "b32 > b32", "shfl.sync.bfly.b32 d, a, 7, 0x1f, {};"),
        ("elect.sync halves", "b32 > b32", "{{\n.reg .pred e;\nelect.sync d|e, {};\n}}"),
    ]
    made = [
        case("warps", name, kinds, branched(text.format("0x0000ffff"), text.format("0xffff0000")))
        for name, kinds, text in rows
    ]
    text = branched("activemask.b32 d;", "mov.b32 d, 0;")
    return [*made, case("warps", "activemask.b32 halves", "b32 > b32", text)]


def barriers() -> list[Case]:
    """``bar``, ``barrier``, ``mbarrier``: what one thread wrote before is there for another after."""
    place = ".reg .b32 at32, other;\nmad.lo.u32 at32, i, 4, sm;\nst.shared.b32 [at32], a;\n"
    reverse = "xor.b32 other, i, 127;\nmad.lo.u32 at32, other, 4, sm;\nld.shared.b32 d, [at32];\nbar.sync 0;"
    half = "xor.b32 other, i, 63;\nmad.lo.u32 at32, other, 4, sm;\nld.shared.b32 d, [at32];\nbar.sync 0;"
    pick = ".reg .b32 which;\nshr.u32 which, i, 6;\nadd.u32 which, which, 1;\n"
    rows = [
        ("bar.sync all", "b32 > b32", place + "bar.sync 0;\n" + reverse),
        ("barrier.cta.sync.aligned", "b32 > b32", place + "barrier.cta.sync.aligned 0;\n" + reverse),
        ("barrier.sync", "b32 > b32", place + "barrier.sync 3;\n" + reverse),
        ("bar.sync named halves", "b32 > b32", place + pick + "bar.sync which, 64;\n" + half),
        ("bar.arrive", "b32 > b32",
         place + ".reg .pred q;\nmov.b32 d, 0;\nsetp.lt.u32 q, i, 64;\n@q bra WRITERS;\nbar.sync 5, 128;\n"
         "xor.b32 other, i, 127;\nmad.lo.u32 at32, other, 4, sm;\nld.shared.b32 d, [at32];\nbra DONE;\nWRITERS:\n"
         "bar.arrive 5, 128;\nDONE:\nbar.sync 0;"),
        ("bar.red.popc.u32", "pred > b32", "bar.red.popc.u32 d, 0, a;"),
        ("bar.red.and.pred", "pred:flags > pred", "bar.red.and.pred d, 0, a;"),
        ("bar.red.or.pred", "pred:flags > pred", "bar.red.or.pred d, 0, !a;"),
        ("barrier.cta.red.popc.aligned.u32", "pred > b32", pick + "barrier.cta.red.popc.aligned.u32 d, which, 64, a;"),
        ("bar.warp.sync", "b32 > b32",
         place + f"bar.warp.sync {_ALL_LANES};\nxor.b32 other, i, 31;\nmad.lo.u32 at32, other, 4, sm;\n"
         "ld.shared.b32 d, [at32];\nbar.sync 0;"),
        ("membar.cta", "b32 > b32", place + "membar.cta;\nbar.sync 0;\n" + reverse),
        ("fence.acq_rel.cta", "b32 > b32", place + "fence.acq_rel.cta;\nfence.sc.gpu;\nbar.sync 0;\n" + reverse),
    ]  # fmt: skip
    return [case("barriers", *row) for row in rows] + _mbarriers()


def _mbarriers() -> list[Case]:
    begin = (
        ".reg .pred p, first;\n.reg .b64 state;\n.reg .b32 at32, other, bar;\nadd.u32 bar, sm, 4096;\nsetp.eq.u32 first, i, 0;\n"
        "@first mbarrier.init.shared.b64 [bar], {};\nbar.sync 0;\nmad.lo.u32 at32, i, 4, sm;\nst.shared.b32 [at32], a;\n"
    )
    finish = (
        "xor.b32 other, i, 127;\nmad.lo.u32 at32, other, 4, sm;\nld.shared.b32 d, [at32];\nbar.sync 0;\n"
        "@first mbarrier.inval.shared.b64 [bar];\nbar.sync 0;"
    )
    wait = "WAIT:\nmbarrier.{}.shared.b64 p, [bar], {};\n@!p bra WAIT;\n"
    rows = [
        ("mbarrier.test_wait", begin.format(128) + "mbarrier.arrive.shared.b64 state, [bar];\n"
         + wait.format("test_wait", "state") + finish),
        ("mbarrier.try_wait", begin.format(128) + "mbarrier.arrive.shared.b64 state, [bar];\n"
         + wait.format("try_wait", "state") + finish),
        ("mbarrier.try_wait.parity", begin.format(128) + "mbarrier.arrive.shared.b64 _, [bar];\n"
         + wait.format("try_wait.parity", "0") + finish),
        ("mbarrier.arrive count", begin.format(256) + "mbarrier.arrive.shared.b64 state, [bar], 2;\n"
         + wait.format("test_wait", "state") + finish),
        ("mbarrier two phases", begin.format(128) + "mbarrier.arrive.shared.b64 state, [bar];\n"
         + wait.format("test_wait", "state") + "mbarrier.arrive.shared.b64 state, [bar];\nAGAIN:\n"
         "mbarrier.test_wait.parity.shared.b64 p, [bar], 1;\n@!p bra AGAIN;\n" + finish),
        ("mbarrier.arrive_drop", begin.format(128) + ".reg .pred low;\nsetp.lt.u32 low, i, 64;\n"
         "@low mbarrier.arrive_drop.shared.b64 state, [bar];\n@!low mbarrier.arrive.shared.b64 state, [bar];\n"
         + wait.format("test_wait", "state") + "@!low mbarrier.arrive.shared.b64 state, [bar];\nAGAIN:\n"
         "mbarrier.test_wait.parity.shared.b64 p, [bar], 1;\n@!p bra AGAIN;\n" + finish),
        ("mbarrier.pending_count", begin.format(5) + "mov.b32 d, 0;\n@first mbarrier.arrive.shared.b64 state, [bar];\n"
         "@first mbarrier.arrive.noComplete.shared.b64 state, [bar], 2;\n"
         "@first mbarrier.pending_count.b64 d, state;\nbar.sync 0;\n"
         "@first mbarrier.inval.shared.b64 [bar];\nbar.sync 0;"),
        ("mbarrier.arrive.expect_tx", begin.format(128) + "@!first mbarrier.arrive.shared.b64 _, [bar];\n"
         "@first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 0;\n" + wait.format("try_wait.parity", "0") + finish),
        ("cp.async.mbarrier.arrive.noinc", begin.format(128).replace("st.shared.b32 [at32], a;\n", "")
         + "mad.wide.u32 at, t, 4, src;\ncp.async.ca.shared.global [at32], [at], 4;\n"
         "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n" + wait.format("try_wait.parity", "0") + finish),
    ]  # fmt: skip
    return [case("barriers", name, "b32 > b32", text) for name, text in rows]


def control() -> list[Case]:
    """Branches that split a warp, loops with a trip count of their own, jumps by table, early exits."""
    rows = [
        ("bra loop by thread", "u32:below32 u32 > u32",
         ".reg .pred p;\n.reg .b32 n;\nmov.b32 d, b;\nmov.b32 n, 0;\nLOOP:\nsetp.ge.u32 p, n, a;\n@p bra DONE;\n"
         "mad.lo.u32 d, d, 1664525, 1013904223;\nadd.u32 n, n, 1;\nbra LOOP;\nDONE:"),
        ("bra.uni loop", "u32 > u32",
         ".reg .pred p;\n.reg .b32 n;\nmov.b32 d, a;\nmov.b32 n, 0;\nLOOP:\nxor.b32 d, d, n;\nshf.l.wrap.b32 d, d, d, 3;\n"
         "add.u32 n, n, 1;\nsetp.lt.u32 p, n, 9;\n@p bra.uni LOOP;"),
        ("bra nested", "s32 s32 > b32",
         ".reg .pred p, q, r;\nsetp.lt.s32 p, a, b;\n@p bra SMALLER;\nand.b32 d, a, 1;\nsetp.eq.u32 q, d, 0;\n@q bra EVEN;\n"
         "mov.b32 d, 1;\nbra JOINED;\nEVEN:\nmov.b32 d, 2;\nbra JOINED;\nSMALLER:\nsetp.lt.s32 r, a, 0;\n@r bra NEGATIVE;\n"
         "sub.s32 d, b, a;\nbra JOINED;\nNEGATIVE:\nadd.s32 d, b, a;\nJOINED:"),
        ("bra collatz", "u32:below32 > u32",
         ".reg .pred p, q;\n.reg .b32 n, one;\nadd.u32 n, a, 1;\nmov.b32 d, 0;\nLOOP:\nsetp.eq.u32 p, n, 1;\n@p bra DONE;\n"
         "and.b32 one, n, 1;\nsetp.eq.u32 q, one, 0;\n@q shr.u32 n, n, 1;\n@!q mad.lo.u32 n, n, 3, 1;\nadd.u32 d, d, 1;\n"
         "bra LOOP;\nDONE:"),
        ("bra loops in a loop", "u32:below7 u32:below7 > u32",
         ".reg .pred p, q;\n.reg .b32 n, m;\nmov.b32 d, 1;\nmov.b32 n, 0;\nOUTER:\nsetp.ge.u32 p, n, a;\n@p bra DONE;\n"
         "mov.b32 m, 0;\nINNER:\nsetp.ge.u32 q, m, b;\n@q bra NEXT;\nmad.lo.u32 d, d, 5, m;\nadd.u32 m, m, 1;\nbra INNER;\n"
         "NEXT:\nadd.u32 d, d, n;\nadd.u32 n, n, 1;\nbra OUTER;\nDONE:"),
        ("bra out of a loop", "u32:below32 u32 > u32",
         ".reg .pred p, q;\n.reg .b32 n, low;\nmov.b32 d, b;\nmov.b32 n, 0;\nLOOP:\nmad.lo.u32 d, d, 69069, 1;\n"
         "and.b32 low, d, 15;\nsetp.eq.u32 q, low, 7;\n@q bra FOUND;\nadd.u32 n, n, 1;\nsetp.le.u32 p, n, a;\n@p bra LOOP;\n"
         "mov.b32 d, 0;\nFOUND:\nadd.u32 d, d, n;"),
        ("brx.idx", "u32:mode u32 > u32",
         "TARGETS: .branchtargets ZERO, ONE, TWO, THREE;\nbrx.idx a, TARGETS;\nZERO:\nadd.u32 d, b, 10;\nbra DONE;\nONE:\n"
         "mul.lo.u32 d, b, 3;\nbra DONE;\nTWO:\nnot.b32 d, b;\nTHREE:\nxor.b32 d, b, 0x5555;\nDONE:"),
        ("bra then shfl", "b32 b32 > b32",
         f".reg .pred p;\n.reg .b32 low;\nand.b32 low, lane, 3;\nsetp.eq.u32 p, low, 0;\nmov.b32 d, a;\n@p bra QUARTER;\n"
         f"add.u32 d, d, b;\nQUARTER:\nbar.warp.sync {_ALL_LANES};\nshfl.sync.down.b32 d, d, 1, 0x1f, {_ALL_LANES};"),
        ("guarded instructions", "s32 s32 pred > s32",
         "mov.b32 d, a;\n@c add.s32 d, a, b;\n@!c sub.s32 d, a, b;\n@c shl.b32 d, d, 1;"),
        ("special registers", "b32 > b32*9",
         "mov.u32 d0, %tid.x;\nmov.u32 d1, %ctaid.x;\nmov.u32 d2, %ntid.x;\nmov.u32 d3, %nctaid.x;\nmov.u32 d4, %laneid;\n"
         "mov.u32 d5, %lanemask_lt;\nmov.u32 d6, %lanemask_ge;\nmov.u32 d7, %lanemask_eq;\nmov.u32 d8, %lanemask_le;"),
    ]  # fmt: skip
    return [case("control", *row) for row in rows]
