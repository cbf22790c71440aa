"""Function names out of the DSL's kernel names."""

from __future__ import annotations

import pytest

from cutegen_nb.core.profile import function_name

TENSORS = "tensorptrf32gmemalign16o41_tensorptrf32gmemalign16o41_0"
SOURCE = """
@cute.kernel
def gemm(x): ...


@cute.kernel
def gemm_3xtf32(x): ...


class Gemm:
    @cute.kernel
    def kernel(self, tiled_mma): ...
"""


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (f"kernel_cutlass_gemm_3xtf32_{TENSORS}", "gemm_3xtf32"),
        (f"kernel_cutlass_gemm_128_{TENSORS}", "gemm"),
        (
            "kernel_cutlass_kernel___main__Gemm_object_at__TiledMMA_ThrLayoutVMNK22141240_Permutation",
            "Gemm.kernel",
        ),
        (f"kernel_cutlass_imported_{TENSORS}", "imported"),
        ("void at::native::copy(float*)", "void at::native::copy(float*)"),
    ],
)
def test_the_name_is_that_of_the_source(kernel, name):
    assert function_name(kernel, SOURCE) == name


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (f"kernel_cutlass__softmax_{TENSORS}", "_softmax"),
        (f"kernel_cutlass_relu_{TENSORS}(float *, int)", "relu"),
        ("kernel_cutlass_gemm_kernel_TiledMMA_ThrLayoutVMNK22141240_tensorptrf16gmem_0", "gemm_kernel"),
        ("kernel_cutlass_scale_None_tensorptrf32_0", "scale"),
        ("kernel_cutlass_step", "step"),
        ("kernel_cutlass_kernel_layersgemm_2Gemm64_object_at__TiledMMA_ThrLayout", "Gemm64.kernel"),
        (
            "kernel_cutlass_split_kernel_some_layers_NormKernel_object_at__tensorptrf32",
            "NormKernel.split_kernel",
        ),
        ("kernel_cutlass_main_layersgemm_object_at__tensorptrf32", "main_layersgemm_object_at_"),
    ],
)
def test_without_a_source_it_ends_where_the_arguments_begin(kernel, name):
    assert function_name(kernel) == name
