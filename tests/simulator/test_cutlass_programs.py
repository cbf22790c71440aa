"""CUTLASS's CuTe DSL examples for Ampere, Hopper and Blackwell, unmodified, at small sizes, each with its own check of results on.

They are fetched, not kept here: `make test-cutlass`, or CUTEGEN_CUTLASS=FOLDER of a clone of NVIDIA/cutlass.
A run counts when the program says PASS (its own check ran, no option skips it) and the simulator executed
a launch of it, whole, with no finding.
"""

import asyncio
import os
from pathlib import Path

import pytest

from cutegen_nb.core.simulation import Ending
from cutegen_nb.simulator.script.run import Script, Streams, run_program

FOLDER = Path(os.environ.get("CUTEGEN_CUTLASS", ""), "examples", "python", "CuTeDSL")
AMPERE, HOPPER = "cute/ampere", "cute/hopper/kernel"
TUTORIAL, BLACKWELL, GEFORCE = (
    "cute/blackwell/tutorial/tutorial_gemm", "cute/blackwell/kernel", "cute/blackwell_geforce/kernel",
)  # fmt: skip

pytestmark = pytest.mark.skipif(
    not os.environ.get("CUTEGEN_CUTLASS"),
    reason="CUTEGEN_CUTLASS names no clone of NVIDIA/cutlass; `make test-cutlass` fetches one",
)

ATTENTION = "--batch_size 1 --num_head 2 --head_dim 64"
PROGRAMS = {
    "elementwise_add": (f"{AMPERE}/kernel/elementwise/elementwise_add.py", "--M 67 --N 259"),
    "elementwise_add timed": (
        f"{AMPERE}/kernel/elementwise/elementwise_add.py",
        "--M 64 --N 256 --benchmark --warmup_iterations 1 --iterations 2",
    ),
    "elementwise_apply": (f"{AMPERE}/kernel/elementwise/elementwise_apply.py", "--M 64 --N 512 --op add"),
    "elementwise_apply mul": (f"{AMPERE}/kernel/elementwise/elementwise_apply.py", "--M 64 --N 512 --op mul"),
    "elementwise_add_autotune": (
        f"{AMPERE}/tutorial/elementwise_add_autotune.py",
        "--M 64 --N 256 --warmup_iterations 0 --iterations 1",
    ),
    "sgemm": (
        f"{AMPERE}/kernel/dense_gemm/sgemm.py",
        "--mnk 200,136,40 --warmup_iterations 0 --iterations 1",
    ),
    "sgemm other layouts": (
        f"{AMPERE}/kernel/dense_gemm/sgemm.py",
        "--mnk 128,128,32 --a_major k --b_major n --c_major m --warmup_iterations 0 --iterations 1",
    ),
    "tensorop_gemm": (
        f"{AMPERE}/kernel/dense_gemm/tensorop_gemm.py",
        "--mnkl 256,128,96,2 --warmup_iterations 0 --iterations 1",
    ),
    "tensorop_gemm other layouts": (
        f"{AMPERE}/kernel/dense_gemm/tensorop_gemm.py",
        "--mnkl 128,256,64,1 --a_major k --b_major k --warmup_iterations 0 --iterations 1",
    ),
    "flash_attention_v2": (
        f"{AMPERE}/kernel/attention/flash_attention_v2.py",
        f"{ATTENTION} --seqlen_q 160 --seqlen_k 160 --warmup_iterations 0 --iterations 1",
    ),
    "flash_attention_v2 causal": (
        f"{AMPERE}/kernel/attention/flash_attention_v2.py",
        f"{ATTENTION} --seqlen_q 128 --seqlen_k 128 --is_causal --warmup_iterations 0 --iterations 1",
    ),
    "hstu_attention": (
        f"{AMPERE}/kernel/attention/hstu_attention.py",
        f"{ATTENTION} --seqlen_q 128 --seqlen_kv 128",
    ),
    "hstu_attention causal": (
        f"{AMPERE}/kernel/attention/hstu_attention.py",
        f"{ATTENTION} --seqlen_q 128 --seqlen_kv 128 --is_causal",
    ),
}


ONCE = "--warmup_iterations 0 --iterations 1"
GROUPS = "--num_groups 2 --problem_sizes_mnkl ((128,128,128,1),(256,128,64,1)) --tile_shape_mn 128,128 --iterations 0"
FOR_HOPPER = {
    "dense_gemm": (
        f"{HOPPER}/dense_gemm/dense_gemm.py",
        f"--mnkl 256,256,128,1 --tile_shape_mn 128,128 --cluster_shape_mn 1,1 {ONCE}",
    ),
    "dense_gemm in clusters": (
        f"{HOPPER}/dense_gemm/dense_gemm.py",
        f"--mnkl 256,256,128,1 --tile_shape_mn 128,128 --cluster_shape_mn 2,1 {ONCE}",
    ),
    "dense_gemm_persistent in clusters": (
        f"{HOPPER}/dense_gemm/dense_gemm_persistent.py",
        f"--mnkl 512,256,128,1 --tile_shape_mn 128,128 --cluster_shape_mn 2,2 {ONCE}",
    ),
    "dense_gemm_fp8_2xacc": (
        f"{HOPPER}/dense_gemm/dense_gemm_fp8_2xacc.py",
        f"--mnkl 256,256,256,1 --tile_shape_mn 128,128 --cluster_shape_mn 1,1 {ONCE}",
    ),
    "dense_gemm_fp8_gelu_persistent": (
        f"{HOPPER}/dense_gemm/dense_gemm_fp8_gelu_persistent.py",
        f"--mnkl 256,256,256,1 {ONCE}",
    ),
    "fmha": (f"{HOPPER}/attention/fmha.py", f"--q_shape 1,128,2,64 --k_shape 1,128,2,64 {ONCE}"),
    "cta_norm": (f"{HOPPER}/cta_norm/cta_norm.py", "--M 64 --N 1024"),
    "grouped_gemm": (f"{HOPPER}/grouped_gemm/grouped_gemm.py", GROUPS),
    "grouped_gemm by maps in global memory": (
        f"{HOPPER}/grouped_gemm/grouped_gemm.py",
        f"{GROUPS} --tensormap_update_mode GMEM",
    ),
}
TILES = "--mma_tiler_mn 128,128 --cluster_shape_mn 1,1"
DENSE, SCALED = f"{BLACKWELL}/dense_gemm/dense_gemm", f"{BLACKWELL}/blockscaled_gemm/dense_blockscaled_gemm"
FOR_BLACKWELL = {
    "fp16_gemm_0": (f"{TUTORIAL}/fp16_gemm_0.py", "--mnk 256,512,128"),
    **{
        f"fp16_gemm_{number}": (f"{TUTORIAL}/fp16_gemm_{number}.py", "--mnk 512,512,128")
        for number in ("1", "2", "3", "3_1", "4", "5", "6")
    },
    "nvfp4_gemm_0": (f"{TUTORIAL}/nvfp4_gemm_0.py", "--mnkl 128,256,512,1"),
    "sm100 dense_gemm": (f"{DENSE}.py", f"--mnkl 256,256,128,1 {TILES} {ONCE}"),
    "sm100 dense_gemm_software_pipeline": (
        f"{DENSE}_software_pipeline.py", f"--mnkl 256,256,128,1 {TILES} {ONCE}",
    ),
    "sm100 dense_gemm_persistent by two CTAs": (
        f"{DENSE}_persistent.py",
        f"--mnkl 512,256,128,1 --mma_tiler_mn 256,128 --cluster_shape_mn 2,1 --use_2cta_instrs {ONCE}",
    ),
    "sm100 dense_gemm_persistent, 64 rows a CTA of two": (
        f"{DENSE}_persistent.py",
        f"--mnkl 256,256,128,1 --mma_tiler_mn 128,128 --cluster_shape_mn 2,1 --use_2cta_instrs {ONCE}",
    ),
    "sm100 dense_gemm_persistent, fp8, 64 rows, transposed": (
        f"{DENSE}_persistent.py",
        ("--mnkl 256,256,128,1 --ab_dtype Float8E4M3FN --c_dtype Float16 --a_major m --b_major n --c_major m "
        f"--mma_tiler_mn 64,128 --cluster_shape_mn 1,1 {ONCE}"),
    ),
    "sm100 dense_gemm_persistent, tf32, transposed": (
        f"{DENSE}_persistent.py",
        f"--mnkl 256,256,128,1 --ab_dtype TFloat32 --c_dtype Float32 --a_major m {TILES} {ONCE}",
    ),
    "sm100 dense_gemm_persistent, int8": (
        f"{DENSE}_persistent.py",
        f"--mnkl 256,256,128,1 --ab_dtype Int8 --acc_dtype Int32 --c_dtype Int32 {TILES} {ONCE}",
    ),
    "sm100 dense_gemm_persistent_dynamic": (
        f"{DENSE}_persistent_dynamic.py", f"--mnkl 512,256,128,1 {TILES} {ONCE}",
    ),
    "sm100 blockscaled, nvf4 by two CTAs": (
        f"{SCALED}_persistent.py",
        f"--mnkl 512,256,512,1 --mma_tiler_mn 256,128 --cluster_shape_mn 2,1 {ONCE}",
    ),
    "sm100 blockscaled, mxf8": (
        f"{SCALED}_persistent.py",
        ("--mnkl 256,256,512,1 --a_dtype Float8E4M3FN --b_dtype Float8E4M3FN --sf_dtype Float8E8M0FNU "
        f"--sf_vec_size 32 {ONCE}"),
    ),
    **{
        f"sm100 blockscaled, {kind} by e4m3": (
            f"{SCALED}_persistent.py",
            (f"--mnkl 256,256,512,1 --a_dtype {kind} --b_dtype Float8E4M3FN --sf_dtype Float8E8M0FNU "
            f"--sf_vec_size 32 {ONCE}"),
        )
        for kind in ("Float4E2M1FN", "Float6E3M2FN")
    },
    "sm100 mla_decode, fp8": (
        f"{BLACKWELL}/attention/mla/mla_decode_fp8.py", f"--batch_size 1 --seq_len_k 128 {ONCE}",
    ),
    "sm100 mamba2": (
        f"{BLACKWELL}/attention/mamba2_ssd/mamba2_ssd.py", f"--gbehcdln 1,1,2,1,4,64,128,128 {ONCE}",
    ),
    "sm100 dense_gemm_persistent_prefetch": (
        f"{DENSE}_persistent_prefetch.py", f"--mnkl 256,256,128,1 {TILES} {ONCE}",
    ),
    "sm100 dense_gemm_alpha_beta_persistent": (
        f"{DENSE}_alpha_beta_persistent.py", f"--mnkl 256,256,128,1 {TILES} {ONCE}",
    ),
    "sm100 dense_gemm_2sm, cute_ext": ("cute_ext/blackwell/dense_gemm_2sm.py", "--mnkl 256,256,128,1"),
    "sm100 blockscaled in groups, mxf4": (
        f"{BLACKWELL}/blockscaled_grouped_gemm/grouped_blockscaled_gemm.py",
        (f"--num_groups 2 --problem_sizes_mnkl ((128,128,256,1),(256,128,128,1)) {TILES} --c_dtype Float16 "
        f"--ab_dtype Float4E2M1FN --sf_dtype Float8E8M0FNU --sf_vec_size 32 {ONCE}"),
    ),
    "sm100 blockwise": (f"{BLACKWELL}/blockwise_gemm/blockwise_gemm.py", f"--mnkl 256,256,256,1 {ONCE}"),
    "sm100 mixed inputs": (f"{BLACKWELL}/mixed_input_gemm/mixed_input_gemm.py", f"--mnkl 128,128,256,1 {ONCE}"),
    "sm100 grouped": (
        f"{BLACKWELL}/grouped_gemm/grouped_gemm.py",
        f"--num_groups 2 --problem_sizes_mnkl ((128,128,128,1),(256,128,64,1)) {TILES} --iterations 0",
    ),
    "sm100 fmha": (
        f"{BLACKWELL}/attention/fmha/fmha.py", f"--q_shape 1,128,2,64 --k_shape 1,128,2,64 {ONCE}",
    ),
    "sm100 mla_decode": (
        f"{BLACKWELL}/attention/mla/mla_decode_fp16.py", f"--batch_size 1 --seq_len_k 128 {ONCE}",
    ),
    "sm100 rmsnorm": (f"{BLACKWELL}/rmsnorm/rmsnorm.py", "--M 64 --N 512"),
    "sm120 dense_gemm": (f"{GEFORCE}/dense_gemm/dense_gemm.py", f"--mnkl 256,256,128,1 {ONCE}"),
    "sm120 blockscaled": (
        f"{GEFORCE}/blockscaled_gemm/dense_blockscaled_gemm_persistent_cooperative.py",
        f"--mnkl 128,128,256,1 {ONCE}",
    ),
}  # fmt: skip


def simulated(path, words, **how):
    output = bytearray()
    program = Script(script=str(FOLDER / path), arguments=tuple(words.split()), deadline_s=240, **how)
    streams = Streams(stdin=asyncio.subprocess.DEVNULL, on_output=output.extend)
    return asyncio.run(run_program(program, streams)), output.decode()


@pytest.mark.parametrize("name", [*PROGRAMS, *FOR_HOPPER])
def test_the_program_passes_its_own_check_on_launches_that_we_executed(name):
    for_hopper = name in FOR_HOPPER
    program = FOR_HOPPER[name] if for_hopper else PROGRAMS[name]
    done, output = simulated(*program, **({"architecture": "sm_90a"} if for_hopper else {}))
    assert (done.ending, done.sentence, done.not_simulated) == (Ending.FINISHED, "", ""), output[-3000:]
    assert output.rstrip().endswith("PASS")
    assert "skip" not in program[1]
    assert done.launch_count >= 1
    assert not done.sampled
    assert [item.message for item in done.findings] == []


@pytest.mark.parametrize("name", FOR_BLACKWELL)
def test_a_program_for_blackwell_passes_its_own_check(name):
    done, output = simulated(
        *FOR_BLACKWELL[name], architecture="sm_120a" if name.startswith("sm120") else "sm_100a"
    )
    assert (done.ending, done.sentence, done.not_simulated) == (Ending.FINISHED, "", ""), output[-3000:]
    assert "PASS" in output or "Results verified successfully" in output
    assert done.launch_count >= 1
    assert not done.sampled
    assert [item.message for item in done.findings] == []


@pytest.mark.parametrize("name", ["elementwise_add", "sgemm", "tensorop_gemm", "flash_attention_v2"])
def test_the_program_s_own_check_is_on_it_fails_when_only_one_cta_of_the_grid_ran(name):
    done, output = simulated(*PROGRAMS[name], max_ctas=1)
    assert done.sampled
    assert "Mismatched elements" in output
    assert (done.ending, done.exit_status) == (Ending.RAISED, 1)


def test_a_size_that_the_example_does_not_guard_is_found_at_its_line():
    """elementwise_apply computes which elements exist and loads the others all the same."""
    done, _ = simulated(f"{AMPERE}/kernel/elementwise/elementwise_apply.py", "--M 64 --N 96")
    assert [item.kind for item in done.findings] == ["out-of-bounds"]
    line = done.sources[done.findings[0].file].splitlines()[done.findings[0].line - 1]
    assert ".load()" in line


TVM_FFI = "dsl_tutorials/tvm_ffi"


def test_the_tutorial_for_tvm_ffi_calls_with_torch_tensors():
    done, output = simulated(f"{TVM_FFI}/jit_and_use_in_torch.py", "")
    assert (done.ending, done.sentence, done.not_simulated) == (Ending.FINISHED, "", ""), output[-3000:]
    assert (done.launch_count, done.findings) == (2, ())
    assert "tensor([ 1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10.])" in output
    assert "tensor([ 2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11.])" in output


def test_the_tutorial_on_errors_of_tvm_ffi_gets_the_dsl_s_words():
    """Its last call has a tensor of another shape, which nothing catches."""
    done, _ = simulated(f"{TVM_FFI}/error_reporting.py", "")
    assert (done.ending, done.exit_status, done.launch_count) == (Ending.RAISED, 1, 0)
    assert "ValueError: Mismatched a.shape[0] on argument #0" in done.sentence


def test_pointers_to_tensors_that_are_gone_are_found():
    """grouped_gemm's benchmark keeps the addresses of its groups' tensors and drops the tensors."""
    done, _ = simulated(
        FOR_HOPPER["grouped_gemm"][0], GROUPS.replace("--iterations 0", ONCE), architecture="sm_90a"
    )
    assert [item.kind for item in done.findings] == ["out-of-bounds"]
    assert done.launch_count >= 1


PRIMITIVES = (
    "async_pipeline", "cp_async_bulk", "cp_async_bulk_prefetch", "cp_async_mbarrier_arrive_cluster",
    "cp_async_mbarrier_arrive_cta", "mapa", "mbarrier", "mbarrier_lifecycle", "pipeline_software_fill",
    "ldmatrix_stmatrix", "red", "reduction/cluster_smem_reduce",
)  # fmt: skip


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_passes_its_own_check(name):
    done, output = simulated(f"experimental/primitives/{name}.py", "", architecture="sm_90a")
    assert (done.ending, done.sentence, done.not_simulated) == (Ending.FINISHED, "", ""), output[-3000:]
    assert done.launch_count >= 1
    assert [item.message for item in done.findings] == []
