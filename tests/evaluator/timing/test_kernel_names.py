"""Kernels of libraries are told from those of a candidate by their names."""

from __future__ import annotations

import pytest

from cutegen_nb.evaluator.timing.kernel_names import is_library_kernel


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("kernel_cutlass_my_gemm_0", False),
        ("kernel_cutlass_at::copy_0", False),
        ("void cutlass::Kernel2<sm80>", True),
        ("nvjet_sm90_tst", True),
        ("triton_poi_fused_0", True),
        ("my_own_cuda_kernel", False),
    ],
)
def test_the_dsls_own_prefix_comes_before_a_librarys_name(name, library):
    assert is_library_kernel(name) is library
