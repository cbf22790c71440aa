"""What is known of a problem and a device, as text for a prompt."""

from __future__ import annotations

from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.graph import TensorSpec, Value
from cutegen_nb.core.problem import ProblemFacts, Workload
from cutegen_nb.core.strategy import Bound


def tensor_text(spec: TensorSpec) -> str:
    """``float32 (1024, 4096)``, with the strides where they are not those of a contiguous tensor."""
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
    """Inputs, parameters and outputs at full size, and the scaled size where the simulator runs one."""
    lines = [*_tensor_lines(facts.full)]
    if facts.full.graph.parameters:
        lines.append("The parameters are made by `__init__` as in the reference.")
    scaled_differs = facts.scaled.graph.inputs != facts.full.graph.inputs
    if device.kind is DeviceKind.SIMULATOR and scaled_differs:
        lines += [
            "",
            "It is run at this smaller size, so it must be right at both:",
            *_tensor_lines(facts.scaled),
        ]
    lines += [f"Note: {warning}" for warning in facts.warnings]
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


def device_text(device: Device) -> str:
    """Name, architecture and ceilings, with where they come from."""
    if device.kind is DeviceKind.SIMULATOR:
        first = (
            f"No GPU: the kernel is compiled for {device.architecture} and executed by a simulator, "
            "which counts "
            f"instructions and memory traffic and gives no times. Ceilings are those of {device.name}."
        )
    else:
        first = f"{device.name}, {device.architecture}."
    lines = [
        first,
        f"- DRAM bandwidth {device.bandwidth_bytes_per_s / 1e12:.2f} TB/s, read and write together",
    ]
    lines += [
        f"- {pipe}: {peak / 1e12:.1f} TFLOP/s dense" for pipe, peak in sorted(device.peak_flops.items())
    ]
    if device.sm_count:
        lines.append(f"- {device.sm_count} SMs")
    if device.l2_bytes:
        lines.append(f"- L2 {device.l2_bytes / 2**20:.0f} MiB")
    lines.append(f"- ceilings from: {device.source}")
    return "\n".join(lines) + "\n"


def work_text(facts: ProblemFacts, *, floor_ms: float, bound: Bound) -> str:
    """Class, FLOPs, least bytes, intensity, the roof that binds, and the floor in milliseconds."""
    full = facts.full
    intensity = full.flops / full.least_bytes if full.least_bytes else 0.0
    return (
        f"- class: {facts.workload_class.value}{_parts_text(facts)}; computed in {facts.dtype}\n"
        f"- {full.flops:,} FLOPs, at least {full.least_bytes:,} bytes at full size\n"
        f"- arithmetic intensity {intensity:.3g} FLOP/byte: the roof is {bound.value}\n"
        f"- no kernel can take less than {floor_ms:.4g} ms at full size\n"
    )


def _parts_text(facts: ProblemFacts) -> str:
    return f" ({', '.join(part.value for part in facts.parts)})" if facts.parts else ""
