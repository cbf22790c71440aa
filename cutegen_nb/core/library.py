"""Library policy of a problem: families of operators that PyTorch may compute beside the kernels.

Without a policy every part of a problem is the kernels' own. With ``conv,matmul`` a candidate may call
PyTorch's convolutions and products in ``forward`` and has to do the rest itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum

from cutegen_nb.core.errors import UsageError


class LibraryFamily(StrEnum):
    """Family of operators that a policy may leave to PyTorch; the set covers KernelBench's levels 1 to 3."""

    CONV = "conv"
    """Convolutions and transposed convolutions, with their bias."""
    MATMUL = "matmul"
    """Products of matrices and vectors, batched or not, with the bias of a linear layer."""
    ATTENTION = "attention"
    """Scaled dot-product attention as one operator."""
    NORM = "norm"
    """Batch, layer, group and instance norm."""
    POOL = "pool"
    """Maximum and average pooling over windows."""


Library = tuple[LibraryFamily, ...]
"""Policy: families without repetition, in the order of `LibraryFamily`; empty for none."""

OPERATORS: dict[LibraryFamily, frozenset[str]] = {
    LibraryFamily.CONV: frozenset({
        "_conv_depthwise2d", "_convolution", "_slow_conv2d_forward", "conv1d", "conv2d", "conv3d",
        "conv_depthwise3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
        "convolution_overrideable", "cudnn_convolution", "cudnn_convolution_transpose", "mkldnn_convolution",
        "slow_conv3d", "slow_conv3d_forward", "slow_conv_dilated2d", "slow_conv_dilated3d",
        "slow_conv_transpose2d", "slow_conv_transpose3d",
    }),
    LibraryFamily.MATMUL: frozenset({
        "addbmm", "addmm", "addmv", "baddbmm", "bmm", "dot", "linear", "matmul", "mm", "mv", "vdot",
    }),
    LibraryFamily.ATTENTION: frozenset({
        "_efficient_attention_forward", "_flash_attention_forward", "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu", "scaled_dot_product_attention",
    }),
    LibraryFamily.NORM: frozenset({
        "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "batch_norm",
        "cudnn_batch_norm", "group_norm", "instance_norm", "layer_norm", "native_batch_norm",
        "native_group_norm", "native_layer_norm",
    }),
    LibraryFamily.POOL: frozenset({
        "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d",
        "avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool2d_with_indices",
        "max_pool3d", "max_pool3d_with_indices",
    }),
}  # fmt: skip
"""ATen operators of each family by short name; functions of ``torch`` and its modules have the same names.

Operators that fuse an activation into a product or a convolution are in none: the activation is the kernel's.
"""
_FAMILIES = {name: family for family, names in OPERATORS.items() for name in names}


def family_of(operator: str) -> LibraryFamily | None:
    """Return the family of an ATen operator: CONV for ``convolution`` or ``aten.convolution.default``."""
    return _FAMILIES.get(operator.removeprefix("aten.").partition(".")[0])


def parse_library(text: str) -> Library:
    """Read a policy such as ``conv,matmul``; ``none`` and an empty text are no policy.

    Raises UsageError, with the known names, for a name that is no family.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words == ["none"]:
        return ()
    known = [family.value for family in LibraryFamily]
    for word in words:
        if word not in known:
            near = difflib.get_close_matches(word, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(
                f"{word!r} is no part that can be left to PyTorch: give {_listed(known, 'or')}{meant}"
            )
    return ordered(LibraryFamily(word) for word in words)


def ordered(families: Iterable[LibraryFamily]) -> Library:
    """Return families once each, in the order of `LibraryFamily`."""
    found = set(families)
    return tuple(family for family in LibraryFamily if family in found)


def library_option(library: Library) -> str:
    """Return a policy as the option takes it: ``conv,matmul``; empty for none."""
    return ",".join(family.value for family in library)


def library_words(library: Library) -> str:
    """Return ``with PyTorch's conv and matmul``, for beside a verdict; empty for none."""
    return f"with PyTorch's {_listed([family.value for family in library], 'and')}" if library else ""


def _listed(names: list[str], last: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
