"""Documented PTX instructions of data movement, control, synchronisation and matrices; see ``isa.table``."""

from __future__ import annotations

from cutegen_nb.simulator.isa.row import Row

# Parts that several examples share.
_TILE = "{%r2, %r3, %r4, %r5}, {%r8, %r9, %r10, %r11}, {%r12, %r13}, {%r14, %r15, %r16, %r17};"
_SCALED = _TILE[:-1] + ", {%r2}, {0, 0}, {%r3}, {0, 1};"
_SPARSE = ", {%r8, %r9}, {%r10, %r11}, {%r12, %r13, %r14, %r15}, %r16, 0x0;"
_FENCE = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
_PRODUCT = (
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r2, %r3, %r4, %r5}, %rd9, %rd9, %p1, 1, 1, 0, 0;"
)
_COLUMNS = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32; ld.shared.b32 %r2, [%r1]; "
_FREED = " tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;"
_TO = ".mbarrier::complete_tx::bytes [%r1], "

MOVEMENT: dict[str, tuple[Row, ...]] = {
    "Data Movement and Conversion Instructions": (
        ("mov", "sm_80", "mov.b64 {%r2, %r3}, %rd5;"),
        ("mov", "sm_80", "mov.b128 %rq1, {%rd4, %rd5};", "b128"),
        (
            "shfl.sync",
            "sm_80",
            "shfl.sync.bfly.b32 %r2|%p1, %r3, 1, 31, -1;",
            "up, down, bfly, idx; b32; with predicate",
        ),
        ("prmt", "sm_80", "prmt.b32.f4e %r2, %r3, %r4, 1;"),
        ("ld", "sm_80", "ld.global.L1::no_allocate.L2::128B.v4.b32 {%r2, %r3, %r4, %r5}, [%rd1];"),
        ("ld", "sm_80", "ld.acquire.gpu.global.b128 %rq1, [%rd1];", "b128"),
        ("ld.global.nc", "sm_80", "ld.global.nc.v2.f32 {%r2, %r3}, [%rd1+8];"),
        ("ldu", "sm_80", "ldu.global.b32 %r2, [%rd1];"),
        ("st", "sm_80", "st.shared.v2.b32 [%r1+8], {%r3, %r4};"),
        ("st", "sm_80", "st.global.b128 [%rd1], %rq1;", "b128"),
        (
            "st.async",
            "sm_90",
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r3, [%r6];",
        ),
        ("st.bulk", "sm_100", "st.bulk.shared::cta [%rd2], 64, 0;"),
        ("multimem.ld_reduce", "sm_90", "multimem.ld_reduce.global.add.u32 %r2, [%rd1];"),
        ("multimem.st", "sm_90", "multimem.st.global.b32 [%rd1], %r3;"),
        ("multimem.red", "sm_90", "multimem.red.global.add.u32 [%rd1], %r3;"),
        ("prefetch", "sm_80", "prefetch.global.L2 [%rd1];"),
        ("prefetchu", "sm_80", "prefetchu.L1 [%rd1];"),
        ("applypriority", "sm_80", "applypriority.global.L2::evict_normal [%rd1], 128;"),
        ("discard", "sm_80", "discard.global.L2 [%rd1], 128;"),
        ("createpolicy", "sm_80", "createpolicy.fractional.L2::evict_last.b64 %rd4, 1.0;"),
        ("isspacep", "sm_80", "isspacep.shared %p1, %rd2;"),
        ("cvta", "sm_80", "cvta.to.global.u64 %rd4, %rd1;"),
        (
            "cvt",
            "sm_80",
            "cvt.rn.relu.f16x2.f32 %r2, %r3, %r4;",
            "integers, f16, f32, f64, tf32; pairs of halves",
        ),
        (
            "cvt",
            "sm_89",
            "cvt.rn.satfinite.e4m3x2.f32 %rs2, %r3, %r4;",
            "e4m3x2, e5m2x2 from f32, f16x2, and back",
        ),
        ("cvt", "sm_90", "cvt.rzi.s32.bf16 %r2, %rs3;", "bf16 with integers, f16, f64; tf32 rn, rz"),
        (
            "cvt",
            "sm_100a+",
            "cvt.rn.satfinite.e2m1x2.f32 %rs2, %r3, %r4;",
            "e2m1x2, e2m3x2, e3m2x2, ue8m0x2",
        ),
        ("cvt", "sm_100a", "cvt.rs.f16x2.f32 %r2, %r3, %r4, %r5;", "rs"),
        ("cvt.pack", "sm_80", "cvt.pack.sat.s8.s32.b32 %r2, %r3, %r4, %r5;", "u2–u16, s2–s16 from s32"),
        ("mapa", "sm_90", "mapa.shared::cluster.u32 %r2, %r1, 0;"),
        ("getctarank", "sm_90", "getctarank.shared::cluster.u32 %r2, %r1;"),
        (
            "cp.async",
            "sm_80",
            "cp.async.ca.shared.global [%r1], [%rd1], 16;",
            "ca, cg; 4, 8, 16 bytes; source size, ignore-src",
        ),
        ("cp.async.commit_group", "sm_80", "cp.async.commit_group;"),
        ("cp.async.wait_group", "sm_80", "cp.async.wait_group 0;"),
        (
            "cp.async.bulk",
            "sm_90",
            "cp.async.bulk.shared::cluster.global" + _TO + "[%rd1], 16, [%r6];",
        ),
        (
            "cp.reduce.async.bulk",
            "sm_90",
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16;",
        ),
        ("cp.async.bulk.prefetch", "sm_90", "cp.async.bulk.prefetch.L2.global [%rd1], 16;"),
        ("cp.async.bulk.commit_group", "sm_90", "cp.async.bulk.commit_group;"),
        ("cp.async.bulk.wait_group", "sm_90", "cp.async.bulk.wait_group 0;"),
        (
            "cp.async.bulk.tensor",
            "sm_90",
            "cp.async.bulk.tensor.1d.shared::cluster.global" + _TO + "[%rd7, {%r2}], [%r6];",
        ),
        (
            "cp.reduce.async.bulk.tensor",
            "sm_90",
            "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd7, {%r2}], [%r1];",
        ),
        (
            "cp.async.bulk.prefetch.tensor",
            "sm_90",
            "cp.async.bulk.prefetch.tensor.1d.L2.global [%rd7, {%r2}];",
        ),
        (
            "tensormap.replace",
            "sm_90a+",
            "tensormap.replace.tile.global_address.global.b1024.b64 [%rd7], %rd1;",
        ),
    ),
    "Texture Instructions": (
        ("tex", "sm_80", ""),
        ("tld4", "sm_80", ""),
        ("txq", "sm_80", ""),
        ("istypep", "sm_80", ""),
    ),
    "Surface Instructions": (
        ("suld", "sm_80", ""),
        ("sust", "sm_80", ""),
        ("sured", "sm_80", ""),
        ("suq", "sm_80", ""),
    ),
    "Control Flow Instructions": (
        ("bra", "sm_80", "bra.uni NEXT; NEXT:"),
        ("brx.idx", "sm_80", "LIST: .branchtargets NEXT; mov.b32 %r2, 0; brx.idx %r2, LIST; NEXT:"),
        (
            "call",
            "sm_80",
            "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r3; call.uni (b), twice, (a); }",
        ),
        ("ret", "sm_80", "ret;", "of kernels and functions"),
        ("exit", "sm_80", "exit;", "of single threads too"),
    ),
    "Parallel Synchronization and Communication Instructions": (
        ("bar.sync", "sm_80", "bar.sync 0;", "id, count"),
        ("bar.arrive", "sm_80", "bar.arrive 1, 64;", "id, count"),
        ("bar.red", "sm_80", "bar.red.popc.u32 %r2, 0, %p1;", "popc, and, or"),
        ("bar.warp.sync", "sm_80", "bar.warp.sync -1;"),
        ("barrier", "sm_80", "barrier.sync 0;", "sync, arrive, red; aligned or not"),
        ("barrier.cluster", "sm_90", "barrier.cluster.arrive; barrier.cluster.wait;"),
        ("membar", "sm_80", "membar.gl;", "accepted: threads run in step"),
        ("fence", "sm_80", "fence.acq_rel.gpu;", "accepted: threads run in step"),
        ("atom", "sm_80", "atom.global.cas.b16 %rs2, [%rd1], %rs3, %rs4;"),
        ("atom", "sm_90", "atom.global.add.v2.f32 {%r2, %r3}, [%rd1], {%r4, %r5};", "v2, v4, v8"),
        ("atom", "sm_90", "atom.global.exch.b128 %rq1, [%rd1], %rq2;", "b128"),
        ("red", "sm_80", "red.shared.add.u32 [%r1], %r3;"),
        ("red", "sm_90", "red.global.add.v4.f32 [%rd1], {%r2, %r3, %r4, %r5};", "v2, v4, v8"),
        (
            "red.async",
            "sm_90",
            "red.async.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r3, [%r6];",
        ),
        ("vote.sync", "sm_80", "vote.sync.ballot.b32 %r2, %p1, -1;", "all, any, uni, ballot"),
        ("match.sync", "sm_80", "match.all.sync.b64 %r2|%p1, %rd4, -1;"),
        ("activemask", "sm_80", "activemask.b32 %r2;"),
        ("redux.sync", "sm_80", "redux.sync.min.s32 %r2, %r3, -1;"),
        ("redux.sync", "sm_100a", "redux.sync.min.f32 %r2, %r3, -1;", "f32 min, max"),
        ("griddepcontrol", "sm_90", "griddepcontrol.wait;"),
        ("elect.sync", "sm_90", "elect.sync %r2|%p1, -1;"),
        ("mbarrier.init", "sm_80", "@%p4 mbarrier.init.shared.b64 [%r1], 32;"),
        (
            "mbarrier.inval",
            "sm_80",
            "bar.sync 0; @%p4 mbarrier.inval.shared.b64 [%r6];",
        ),
        (
            "mbarrier.expect_tx",
            "sm_90",
            "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r6], 0;",
        ),
        (
            "mbarrier.complete_tx",
            "sm_90",
            "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r6], 0;",
        ),
        (
            "mbarrier.arrive",
            "sm_80",
            "mbarrier.arrive.shared.b64 %rd4, [%r6];",
        ),
        (
            "mbarrier.arrive_drop",
            "sm_80",
            "mbarrier.arrive_drop.shared.b64 %rd4, [%r6];",
        ),
        (
            "cp.async.mbarrier.arrive",
            "sm_80",
            "cp.async.mbarrier.arrive.shared.b64 [%r6];",
        ),
        (
            "mbarrier.test_wait",
            "sm_80",
            "mbarrier.arrive.shared.b64 %rd4, [%r6]; mbarrier.test_wait.shared.b64 %p1, [%r6], %rd4;",
        ),
        (
            "mbarrier.try_wait",
            "sm_90",
            "mbarrier.try_wait.parity.shared.b64 %p1, [%r6], 1;",
        ),
        (
            "mbarrier.pending_count",
            "sm_80",
            "mbarrier.arrive.shared.b64 %rd4, [%r6]; mbarrier.pending_count.b64 %r2, %rd4;",
        ),
        (
            "tensormap.cp_fenceproxy",
            "sm_90",
            _FENCE + "[%rd7], [%r1], 128;",
        ),
        (
            "clusterlaunchcontrol.try_cancel",
            "sm_100",
            "@%p4 clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [%rd2], [%rd8];",
            "multicast",
        ),
        (
            "clusterlaunchcontrol.query_cancel",
            "sm_100",
            "mov.b128 %rq1, {%rd1, %rd2}; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %rq1;",
            "is_canceled, get_first_ctaid",
        ),
    ),
    "Warp Level Matrix Multiply-Accumulate Instructions": (
        (
            "wmma.load",
            "sm_80",
            "wmma.load.c.sync.aligned.row.m16n16k16.global.f16 {%r2, %r3, %r4, %r5}, [%rd1];",
        ),
        (
            "wmma.store",
            "sm_80",
            "wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd1], {%r2, %r3, %r4, %r5};",
        ),
        ("wmma.mma", "sm_80", ""),
        (
            "mma",
            "sm_80",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + _TILE,
        ),
        (
            "mma",
            "sm_89",
            "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 " + _TILE,
            "e4m3, e5m2",
        ),
        (
            "mma",
            "sm_120a",
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32"
            ".e2m1.e2m1.f32.ue4m3 " + _SCALED,
            "kinds f8f6f4, mxf8f6f4, mxf4, mxf4nvf4",
        ),
        (
            "mma.sp",
            "sm_80",
            "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r2, %r3, %r4, %r5}" + _SPARSE,
            "ordered_metadata; 16 bits k16 k32, tf32 k8 k16, s8 u8 k32 k64, fp8 k64, s4 u4 k64 k128",
        ),
        (
            "ldmatrix",
            "sm_80",
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r1];",
            "m8n8 x1, x2, x4; trans; shared or generic; b16",
        ),
        (
            "ldmatrix",
            "sm_100a+",
            "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r2, %r3}, [%r1];",
            "m16n16 x1, x2 of b8, b6x16_p32, b4x16_p64; m8n16 x1, x2, x4 of b6x16_p32, b4x16_p64",
        ),
        (
            "stmatrix",
            "sm_90",
            "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};",
            "m8n8 x1, x2, x4; trans; shared or generic; b16",
        ),
        (
            "stmatrix",
            "sm_100a+",
            "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r1], {%r2};",
            "m16n8 x1, x2, x4 of b8",
        ),
        ("movmatrix", "sm_80", "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r3;"),
    ),
    "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions": (
        ("wgmma.mma_async", "sm_90a", _PRODUCT),
        ("wgmma.mma_async.sp", "sm_90a", ""),
        ("wgmma.fence", "sm_90a", "wgmma.fence.sync.aligned;"),
        ("wgmma.commit_group", "sm_90a", "wgmma.commit_group.sync.aligned;"),
        ("wgmma.wait_group", "sm_90a", "wgmma.wait_group.sync.aligned 0;"),
    ),
    "TensorCore 5th Generation Family Instructions": (
        ("tcgen05.alloc", "sm_100a", _COLUMNS + _FREED),
        ("tcgen05.dealloc", "sm_100a", _COLUMNS + _FREED),
        (
            "tcgen05.relinquish_alloc_permit",
            "sm_100a",
            "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
        ),
        (
            "tcgen05.ld",
            "sm_100a",
            _COLUMNS + "tcgen05.ld.sync.aligned.16x64b.x2.b32 {%r4, %r5}, [%r2];" + _FREED,
            "32x32b, 16x64b, 16x128b, 16x256b, 16x32bx2; x1 to x128; pack::16b",
        ),
        (
            "tcgen05.ld.red",
            "sm_103a",
            _COLUMNS + "tcgen05.ld.red.sync.aligned.32x32b.x2.max.f32 {%r4, %r5}, %r7, [%r2];" + _FREED,
            "min, max; f32, u32, s32",
        ),
        (
            "tcgen05.st",
            "sm_100a",
            _COLUMNS + "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r2], {%r4, %r5};" + _FREED,
            "shapes of ld; unpack::16b",
        ),
        ("tcgen05.wait", "sm_100a", "tcgen05.wait::ld.sync.aligned;", "ld, st"),
        (
            "tcgen05.cp",
            "sm_100a",
            _COLUMNS + "@%p4 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r2], %rd5;" + _FREED,
            "all shapes and multicasts; b8x16 of b6x16_p32 and b4x16_p64",
        ),
        ("tcgen05.shift", "sm_100a", ""),
        (
            "tcgen05.mma",
            "sm_100a",
            _COLUMNS
            + "mov.b32 %r4, 0x8040010; setp.ne.b32 %p2, 0, 0; "
            + "@%p4 tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd5, %rd5, %r4, %p2;"
            + _FREED,
            "kinds f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4; one CTA or two; A from either memory",
        ),
        ("tcgen05.mma.sp", "sm_100a", ""),
        ("tcgen05.mma.ws", "sm_100a", ""),
        ("tcgen05.mma.ws.sp", "sm_100a", ""),
        ("tcgen05.fence", "sm_100a", "tcgen05.fence::before_thread_sync;", "accepted: threads run in step"),
        (
            "tcgen05.commit",
            "sm_100a",
            "@%p4 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];",
            "multicast",
        ),
    ),
    "Stack Manipulation Instructions": (
        ("stacksave", "sm_80", "stacksave.u64 %rd4;"),
        ("stackrestore", "sm_80", "stackrestore.u64 %rd4;"),
        ("alloca", "sm_80", "alloca.u64 %rd4, 16, 8;"),
    ),
    "Video Instructions": tuple(
        (name, "sm_80", "")
        for name in (
            "vadd",
            "vsub",
            "vabsdiff",
            "vmin",
            "vmax",
            "vshl",
            "vshr",
            "vmad",
            "vset",
            "vadd2",
            "vsub2",
            "vavrg2",
            "vabsdiff2",
            "vmin2",
            "vmax2",
            "vset2",
            "vadd4",
            "vsub4",
            "vavrg4",
            "vabsdiff4",
            "vmin4",
            "vmax4",
            "vset4",
        )
    ),
    "Miscellaneous Instructions": (
        ("brkpt", "sm_80", "setp.ne.b32 %p1, 0, 0; @%p1 brkpt;", "as trap"),
        ("nanosleep", "sm_80", "nanosleep.u32 40;"),
        ("pmevent", "sm_80", "pmevent 1;"),
        ("trap", "sm_80", "setp.ne.b32 %p1, 0, 0; @%p1 trap;"),
        ("setmaxnreg", "sm_90a+", "setmaxnreg.inc.sync.aligned.u32 232;"),
    ),
}
"""Rows by chapter of the PTX ISA (9.7.9 to 9.7.19)."""
