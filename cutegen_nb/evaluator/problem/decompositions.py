"""Decompositions of ATen operations that lower a traced reference to reductions and point-wise arithmetic.

PyTorch's own core decompositions are used where they are readable. Where they are not (a ``clamp`` becomes
ten nodes of comparisons and NaN tests, a batch norm becomes ``prims``) the formulas below replace them. They
state the operation as its documentation does, for authors who write a kernel from the graph. The graph is
read and never executed as a reference: correctness is judged against the problem's own ``forward``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._decomp import core_aten_decompositions, get_decompositions

# ruff: noqa: SLF001 — most of the operators that reach this table have names with an underscore
aten = torch.ops.aten

_KEPT_WHOLE = (
    "relu", "clamp", "clamp_min", "clamp_max", "triu", "tril", "square", "log_softmax", "softmax",
    "upsample_linear1d",
)  # fmt: skip
"""Operations that are not decomposed. ``clamp_min`` and ``square`` are renamed by ``aten_aliases``."""

_FROM_TORCH = (
    "_softmax", "_log_softmax", "gelu", "silu", "elu", "selu", "celu", "leaky_relu", "softplus", "mish",
    "log_sigmoid_forward", "huber_loss", "smooth_l1_loss", "mse_loss",
    "l1_loss", "soft_margin_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "nll_loss_forward", "softshrink", "hardshrink", "threshold", "addcmul", "addcdiv", "rsub",
    "prelu", "_prelu_kernel", "glu", "std", "logsumexp", "t", "transpose",
    "addr", "masked_fill", "nan_to_num",
)  # fmt: skip
"""Operations whose decomposition in PyTorch is used as it is."""

Table = dict[Any, Callable[..., Any]]
"""Decomposition by operator overload."""


@cache
def lowering_table() -> Table:
    """Return the decompositions by operator, for ``make_fx``. About 0.1 s the first time, then cached."""
    table: Table = dict(core_aten_decompositions())
    table.update(get_decompositions([getattr(aten, name) for name in _FROM_TORCH]))
    for operator in list(table):
        if str(operator).startswith("aten.") and str(operator).split(".")[1] in _KEPT_WHOLE:
            del table[operator]
    table.update(_own_formulas())
    return table


def _own_formulas() -> Table:
    return {
        aten.view.default: _view,
        aten.hardtanh.default: _hardtanh,
        aten.relu6.default: lambda x: torch.clamp(x, 0, 6),
        aten.hardsigmoid.default: _hardsigmoid,
        aten.hardswish.default: lambda x: x * _hardsigmoid(x),
        aten.xlogy.Tensor: _xlogy,
        aten.lerp.Scalar: _lerp,
        aten.lerp.Tensor: _lerp,
        aten.addmm.default: _product_and_add(torch.mm),
        aten.addmv.default: _product_and_add(torch.mv),
        aten.baddbmm.default: _product_and_add(torch.bmm),
        aten.linalg_vector_norm.default: _vector_norm,
        aten.norm.ScalarOpt_dim: _norm,
        aten.norm.Scalar: _norm_of_all,
        aten._cdist_forward.default: _distances,
        aten._trilinear.default: _trilinear,
        aten.var_mean.correction: lambda x, dim=None, **kw: (torch.var(x, dim, **kw), _mean_like(x, dim, kw)),
        aten.std_mean.correction: lambda x, dim=None, **kw: (torch.std(x, dim, **kw), _mean_like(x, dim, kw)),
        aten.native_layer_norm.default: _layer_norm,
        aten.native_group_norm.default: _group_norm,
        aten.native_batch_norm.default: _batch_norm,
        aten._native_batch_norm_legit.default: _batch_norm,
        aten._native_batch_norm_legit.no_stats: _batch_norm_without_stats,
        aten._native_batch_norm_legit_functional.default: _batch_norm_functional,
        aten._native_batch_norm_legit_no_training.default: _batch_norm_frozen,
        aten._fused_rms_norm.default: _rms_norm,
        aten._scaled_dot_product_flash_attention_for_cpu.default: _attention,
    }


def _view(x: Tensor, shape: list[int]) -> Tensor:
    """Copy a tensor that is not contiguous before the view; the graph reader drops the copy again.

    A formula here may return other strides than the operator it replaces, so that a view that ``forward``
    takes of the result may not be possible any more. A graph states values, not strides.
    """
    if x.is_contiguous():
        return NotImplemented  # make_fx then records the view itself
    return torch.ops.aten.view.default(x.contiguous(), shape)


def _hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    return torch.clamp(x, min_val, max_val)


def _hardsigmoid(x: Tensor) -> Tensor:
    return torch.clamp(x + 3, 0, 6) / 6


def _xlogy(x: Tensor, y: Tensor) -> Tensor:
    """x·log(y), 0 where x is 0. The NaN that PyTorch returns there for a NaN `y` is left out."""
    return torch.where(x == 0, 0.0, x * torch.log(y))


def _lerp(start: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    return start + weight * (end - start)


def _product_and_add(product: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Make the rule for ``beta·added + alpha·(a @ b)``, without multiplications by one."""

    def rule(added: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        result = product(a, b) if alpha == 1 else product(a, b) * alpha
        if beta == 0:  # `added` is not read then, so that its NaN does not count
            return result
        return result + (added if beta == 1 else added * beta)

    return rule


def _vector_norm(
    x: Tensor,
    order: float = 2.0,
    dim: list[int] | None = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002 — the operator's signature
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """p-norm sum(|x|^p)^(1/p); the largest or smallest |x| for ±inf, the number of non-zeros for 0."""
    x = x if dtype is None else x.to(dtype)
    dims = dim or list(range(x.dim()))
    if order == math.inf:
        return torch.amax(x.abs(), dims, keepdim)
    if order == -math.inf:
        return torch.amin(x.abs(), dims, keepdim)
    if order == 0:
        return torch.sum((x != 0).to(x.dtype), dims, keepdim)
    if order == 1:
        return torch.sum(x.abs(), dims, keepdim)
    if order == 2:  # noqa: PLR2004 — the Euclidean norm
        return torch.sqrt(torch.sum(x * x, dims, keepdim))
    return torch.sum(x.abs() ** order, dims, keepdim) ** (1.0 / order)


def _norm(
    x: Tensor,
    order: float | None,
    dim: list[int],
    keepdim: bool = False,  # noqa: FBT001, FBT002 — the operator's signature
) -> Tensor:
    return _vector_norm(x, 2.0 if order is None else float(order), dim, keepdim)


def _norm_of_all(x: Tensor, order: float = 2) -> Tensor:
    return _vector_norm(x, float(order))


def _distances(a: Tensor, b: Tensor, order: float, mode: int | None) -> Tensor:  # noqa: ARG001 - as ATen has it
    """p-norm of the difference of each row of `a` and each row of `b`."""
    return _vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), order, [-1])


def _trilinear(  # noqa: PLR0913, PLR0917 - the operator's signature
    a: Tensor,
    b: Tensor,
    c: Tensor,
    expand_a: list[int],
    expand_b: list[int],
    expand_c: list[int],
    summed: list[int],
    unroll: int = 1,  # noqa: ARG001 - only the order of the work depends on it
) -> Tensor:
    """x1ᵀ·W·x2 for each output of nn.Bilinear: a product with all the weights, then one row sum."""
    if (expand_a, expand_b, expand_c, summed) != ([1, 3], [0], [1, 2], [2, 3]):
        return NotImplemented  # other sums of a·b·c stay as they are
    outputs, width, _ = b.shape
    products = torch.mm(c, b.reshape(outputs * width, -1).t())
    return torch.sum(products.view(-1, outputs, width) * a.unsqueeze(1), [-1])


def _mean_like(x: Tensor, dim: list[int] | None, keywords: dict[str, Any]) -> Tensor:
    return torch.mean(x, dim, keepdim=bool(keywords.get("keepdim", False)))


def _normalise(x: Tensor, dims: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x − mean)·rsqrt(var + eps) over `dims`; also mean and rsqrt(var + eps), with extent 1 in `dims`."""
    mean = torch.mean(x, dims, keepdim=True)
    # correction=0: norms divide by n, not by n − 1.
    rstd = torch.rsqrt(torch.var(x, dims, correction=0, keepdim=True) + eps)
    return (x - mean) * rstd, mean, rstd


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: list[int]) -> Tensor:
    """x·weight + bias, both viewed in `shape` to broadcast; None stands for 1 and 0."""
    x = x if weight is None else x * weight.view(shape)
    return x if bias is None else x + bias.view(shape)


def _layer_norm(
    x: Tensor, normalized_shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    wide, dtype = _widened(x)
    out, mean, rstd = _normalise(wide, dims, eps)
    return _affine(out, weight, bias, list(normalized_shape)).to(dtype), mean, rstd


def _rms_norm(
    x: Tensor, normalized_shape: list[int], weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    wide, dtype = _widened(x)
    smallest = torch.finfo(wide.dtype).eps if eps is None else eps
    # Zhang and Sennrich, Root Mean Square Layer Normalization, 2019: x ÷ √(mean(x²) + eps).
    rstd = torch.rsqrt(torch.mean(wide * wide, dims, keepdim=True) + smallest)
    return _affine(wide * rstd, weight, None, list(normalized_shape)).to(dtype), rstd


def _group_norm(  # noqa: PLR0913, PLR0917 — the operator's signature
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    inner: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    wide, dtype = _widened(x)
    grouped = wide.reshape([batch, groups, channels // groups * inner])
    out, mean, rstd = _normalise(grouped, [2], eps)
    per_channel = [1, channels] + [1] * (x.dim() - 2)
    out = _affine(out.reshape(x.shape), weight, bias, per_channel).to(dtype)
    return out, mean.view([batch, groups]), rstd.view([batch, groups])


def _batch_norm(  # noqa: PLR0913, PLR0917 — the operator's signature
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,  # noqa: FBT001 — the operator's signature
    momentum: float,  # noqa: ARG001 — only the running statistics use it, which are no output
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise over every dimension but 1; running statistics are used in evaluation only.

    Their update in training is no output of ``forward`` and is left out.
    """
    per_channel = [1, x.shape[1]] + [1] * (x.dim() - 2)
    wide, dtype = _widened(x)
    if training or running_mean is None or running_var is None:
        out, mean, rstd = _normalise(wide, [0, *range(2, x.dim())], eps)
    else:
        mean, rstd = running_mean.view(per_channel), torch.rsqrt(running_var.view(per_channel) + eps)
        out = (wide - mean) * rstd
    flat = [x.shape[1]]
    return _affine(out, weight, bias, per_channel).to(dtype), mean.view(flat), rstd.view(flat)


def _batch_norm_without_stats(  # noqa: PLR0913, PLR0917 — the operator's signature
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,  # noqa: ARG001, FBT001 — the operator's signature
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    return _batch_norm(x, weight, bias, None, None, True, momentum, eps)


def _batch_norm_functional(  # noqa: PLR0913, PLR0917 — the operator's signature
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,  # noqa: FBT001 — the operator's signature
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    out = _batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps)
    return (*out, running_mean, running_var)


def _batch_norm_frozen(  # noqa: PLR0913, PLR0917 — the operator's signature
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    return _batch_norm(x, weight, bias, running_mean, running_var, False, momentum, eps)


def _widened(x: Tensor) -> tuple[Tensor, torch.dtype]:
    """Convert a half type to float32, in which PyTorch's norms accumulate; also return the dtype of `x`."""
    narrow = x.dtype in {torch.float16, torch.bfloat16}
    return (x.to(torch.float32) if narrow else x), x.dtype


def _attention(  # noqa: PLR0913 — the operator's signature
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,  # noqa: ARG001 — the CPU operator takes it and requires 0
    is_causal: bool = False,  # noqa: FBT001, FBT002 — the operator's signature
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """softmax(query·keyᵀ·scale + mask)·value over the last two dimensions, and the log-sum-exp of the scores.

    Shapes (batch, heads, length, width); `scale` is 1/√width unless given. With fewer heads of `key` and
    `value` each serves several of `query`'s, in order.
    """
    groups = query.shape[-3] // key.shape[-3]
    if groups > 1:
        key, value = (x.repeat_interleave(groups, dim=-3) for x in (key, value))
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = torch.matmul(query, key.transpose(-2, -1)) * factor
    if is_causal:
        allowed = torch.ones_like(scores, dtype=torch.bool).tril()
        scores = torch.where(allowed, scores, -math.inf)
    if attn_mask is not None:
        scores = scores + attn_mask
    largest = torch.amax(scores, [-1], keepdim=True)
    # Less the row's maximum: exp of it is at most 1, and the quotient is the same.
    weights = torch.exp(scores - largest)
    total = torch.sum(weights, [-1], keepdim=True)
    out = torch.matmul(weights / total, value)
    return out, (torch.log(total) + largest).squeeze(-1)
