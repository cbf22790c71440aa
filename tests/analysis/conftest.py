"""Workloads by their extents, and the circumstances of a kernel for them.

No test is held to a time: Hypothesis has no deadline.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import settings

from cutegen_nb.analysis.strategy.conditions import Circumstances
from cutegen_nb.analysis.strategy.kernel_traits import KernelTraits
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.graph import Graph, Node, Ref, TensorSpec, Value
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.testing import examples

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


def spec(*shape, dtype="float32"):
    strides = tuple(math.prod(shape[at + 1 :]) for at in range(len(shape)))
    return TensorSpec(shape=shape, dtype=dtype, strides=strides)


def node(name, op, args, *shape):
    return Node(name=name, op=f"aten.{op}", args=args, kwargs=(), outputs=(spec(*shape),))


class Workloads:
    """Makers of workloads."""

    @staticmethod
    def of(inputs, nodes, parameters=()):
        """Workload of these nodes; the last one is the output."""
        graph = Graph(
            inputs=tuple(inputs), parameters=tuple(parameters), nodes=tuple(nodes),
            outputs=(Ref(nodes[-1].name),) if nodes else (),
        )  # fmt: skip
        given = sum(value.spec.size_bytes for value in (*inputs, *parameters))
        return Workload(
            graph=graph, flops=1, least_bytes=given + sum(one.size_bytes for one in graph.output_specs)
        )

    @classmethod
    def relu(cls, *shape, dtype="float32"):
        return cls.of(
            [Value(name="x", spec=spec(*shape, dtype=dtype))],
            [node("r", "relu.default", (Ref("x"),), *shape)],
        )

    @classmethod
    def row_sum(cls, rows, length):
        """Sum of each row: one statistic, one pass."""
        return cls.of(
            [Value(name="x", spec=spec(rows, length))],
            [node("s", "sum.dim_IntList", (Ref("x"), (1,)), rows)],
        )

    @classmethod
    def column_sum(cls, length, columns):
        """Sum over the outer dimension, whose elements are not side by side."""
        return cls.of(
            [Value(name="x", spec=spec(length, columns))],
            [node("s", "sum.dim_IntList", (Ref("x"), (0,)), columns)],
        )

    @classmethod
    def softmax(cls, rows, length):
        """Softmax of each row: two statistics, and a result for each element."""
        return cls.of(
            [Value(name="x", spec=spec(rows, length))],
            [node("s", "_softmax.default", (Ref("x"), 1, False), rows, length)],
        )

    @classmethod
    def scan(cls, rows, length):
        """Cumulative sum along each row."""
        return cls.of(
            [Value(name="x", spec=spec(rows, length))],
            [node("c", "cumsum.default", (Ref("x"), 1), rows, length)],
        )

    @classmethod
    def column_scan(cls, length, columns):
        """Cumulative sum along the outer dimension."""
        return cls.of(
            [Value(name="x", spec=spec(length, columns))],
            [node("c", "cumsum.default", (Ref("x"), 0), length, columns)],
        )

    @classmethod
    def product(cls, m, n, k, *after):
        """(m × k)·(k × n), with point-wise operations after it."""
        nodes = [node("p", "mm.default", (Ref("a"), Ref("b")), m, n)]
        for name in after:
            nodes.append(node(name, f"{name}.default", (Ref(nodes[-1].name),), m, n))
        return cls.of([Value(name="a", spec=spec(m, k)), Value(name="b", spec=spec(k, n))], nodes)

    @classmethod
    def convolution(cls, channels, groups, side=64):
        """2-D convolution of 16 images by 3 × 3 taps, with as many channels out as in."""
        shape = (16, channels, side, side)
        options = (Ref("x"), Ref("w"), None, (1, 1), (1, 1), (1, 1), False, (0, 0), groups)
        return cls.of(
            [
                Value(name="x", spec=spec(*shape)),
                Value(name="w", spec=spec(channels, channels // groups, 3, 3)),
            ],
            [node("c", "convolution.default", options, *shape)],
        )

    @classmethod
    def masked(cls, rows, length):
        return cls.of(
            [Value(name="x", spec=spec(rows, length))],
            [node("t", "tril.default", (Ref("x"),), rows, length)],
        )


@pytest.fixture
def workloads():
    return Workloads


@pytest.fixture
def here():
    """Maker of circumstances: a workload at full size, the traits of a kernel, an H200's multiprocessors."""

    def made(full, *, kind=WorkloadClass.OTHER, sms=132, architecture="sm_90a", **traits):
        device = replace(
            examples.simulated_device(), kind=DeviceKind.GPU, sm_count=sms, architecture=architecture
        )
        facts = ProblemFacts(workload_class=kind, full=full, scaled=full, dtype="float32")
        return Circumstances(facts=facts, device=device, traits=KernelTraits(**traits))

    return made
