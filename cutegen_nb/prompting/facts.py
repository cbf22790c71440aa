"""Facts about problem and device as text for a prompt."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.graph import TensorSpec, Value
from cutegen_nb.core.library import Library, LibraryFamily
from cutegen_nb.core.problem import ProblemFacts, Workload

_SMALLER = (
    "Values are judged at this smaller size, so the kernel must be right at both; it is to be fast at the "
    "first:"
)
"""Heading of the scaled tensors."""

_PARTS: dict[LibraryFamily, str] = {
    LibraryFamily.CONV: "convolutions (`torch.nn.Conv2d`, `torch.nn.functional.conv_transpose2d` …)",
    LibraryFamily.MATMUL: "matrix products (`torch.nn.Linear`, `torch.matmul` …)",
    LibraryFamily.ATTENTION: "attention (`torch.nn.functional.scaled_dot_product_attention`)",
    LibraryFamily.NORM: "norms (`torch.nn.functional.layer_norm` …)",
    LibraryFamily.POOL: "pooling over windows (`torch.nn.functional.max_pool2d` …)",
}
"""Parts that a policy leaves to PyTorch, in the words of a prompt."""


def library_parts(library: Library) -> str:
    """List the parts that the problem's policy leaves to PyTorch; empty for none."""
    return " and ".join(_PARTS[family] for family in library)


def tensor_text(spec: TensorSpec) -> str:
    """Format a tensor as ``float32 (1024, 4096)``, with its strides unless contiguous."""
    shape = ", ".join(map(str, spec.shape)) + ("," if len(spec.shape) == 1 else "")
    text = f"{spec.dtype} ({shape})"
    expected, strides = 1, []
    for extent in reversed(spec.shape):
        strides.append(expected)
        expected *= extent
    if tuple(reversed(strides)) != spec.strides:
        text += f", strides {spec.strides}"
    return text


def workload_text(facts: ProblemFacts, device: Device) -> str:
    """List inputs, parameters and outputs at full size, and at the simulator's scaled size if another."""
    lines = [*_tensor_lines(facts.full)]
    if facts.full.graph.parameters:
        lines.append("The parameters are made by `__init__` as in the reference.")
    scaled_differs = facts.scaled.graph.inputs != facts.full.graph.inputs
    if device.kind is DeviceKind.SIMULATOR and scaled_differs:
        lines += [
            "",
            _SMALLER,
            *_tensor_lines(facts.scaled),
        ]
    lines += [f"Note: {warning}" for warning in facts.warnings_on(device.kind)]
    return "\n".join(lines) + "\n"


def _tensor_lines(workload: Workload) -> list[str]:
    graph = workload.graph
    lines = [f"- input {_label(value)}: {tensor_text(value.spec)}" for value in graph.inputs]
    lines += [f"- input {position}: the number {value!r}" for position, value in graph.scalars]
    lines += [f"- parameter `{_label(value)}`: {tensor_text(value.spec)}" for value in graph.parameters]
    lines += [f"- output {index}: {tensor_text(spec)}" for index, spec in enumerate(graph.output_specs)]
    return lines


def _label(value: Value) -> str:
    return value.path or value.name


def device_text(device: Device, ceilings: Sequence[str], estimated_for: Device | None = None) -> str:
    """Describe a device with the ceilings that count for the problem, and their source.

    Without a GPU the figures are those of `estimated_for`, the GPU that times are estimated for.
    """
    if device.kind is DeviceKind.SIMULATOR:
        compiled_for, device = device.architecture, estimated_for or device
        first = (
            f"No GPU: the kernel is compiled for {compiled_for}, so that it can use nothing newer, and run "
            "by a simulator, which counts instructions and memory traffic. No time is measured; times are "
            f"estimated for {device.name} from the counts at the full size. All figures below are of "
            f"{device.name}: choose sizes, grids and tiles for it at the full size."
        )
    else:
        first = f"{device.name}, {device.architecture}."
    parts = [f"DRAM {device.bandwidth_bytes_per_s / 1e12:.2f} TB/s, read and write together"]
    parts += [f"{device.sm_count} SMs"] if device.sm_count else []
    parts += [f"L2 {device.l2_bytes / 2**20:.0f} MiB"] if device.l2_bytes else []
    lines = [first, f"- {'; '.join(parts)}", *(f"- {line}" for line in ceilings), f"- from: {device.source}"]
    return "\n".join(lines) + "\n"


def work_text(facts: ProblemFacts, floors: Sequence[str]) -> str:
    """List class, FLOPs, least bytes, intensity and the least times `floors`, a sentence each."""
    full = facts.full
    intensity = full.flops / full.least_bytes if full.least_bytes else 0.0
    lines = (
        f"class: {facts.workload_class.value}{_parts_text(facts)}; computed in {facts.dtype}",
        (
            f"{full.flops:,} FLOPs in the reference's own operations, at least {full.least_bytes:,} bytes: "
            f"{intensity:.3g} FLOP/byte at full size"
        ),
        *floors,
    )
    return "".join(f"- {line}\n" for line in lines)


def _parts_text(facts: ProblemFacts) -> str:
    return f" ({', '.join(part.value for part in facts.parts)})" if facts.parts else ""
