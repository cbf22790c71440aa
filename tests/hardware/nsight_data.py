"""Reports of an H200 under Nsight Compute, as values: the kernels of each run, and the faults planted in some."""

from __future__ import annotations

import functools
import json
import lzma
from dataclasses import replace
from pathlib import Path

from cutegen_nb.analysis.bottleneck.diagnose import diagnose
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.evaluator.process.device import simulated
from cutegen_nb.evaluator.tools.ncu_csv import read_raw, with_source
from cutegen_nb.evaluator.tools.ncu_profile import profile_of

HERE = Path(__file__).parent
DATA = HERE / "data" / "nsight"
PLANTED = HERE.parent / "analysis" / "planted"
TOLD = json.loads((DATA / "recorded.json").read_text())
DEVICE = replace(simulated("sm_90a"), name=TOLD["device"])
PLANTS = sorted({row["group"] for row in TOLD["large"] if row["role"]})


def unpacked(name):
    return lzma.decompress((DATA / f"{name}.xz").read_bytes())


@functools.cache
def large():
    recorded = read_raw(unpacked("large_raw.csv").decode(), tool=TOLD["tool"], date=TOLD["date"])
    return with_source(recorded, unpacked("large_source.csv").decode())


@functools.cache
def large_profile():
    return profile_of(large())


def launched(group, name):
    """Row and profile of one program that was run on the H200."""
    index = next(i for i, row in enumerate(TOLD["large"]) if (row["group"], row["name"]) == (group, name))
    profile = large_profile()
    return TOLD["large"][index], replace(profile, launches=(profile.launches[index],))


def facts_of(row):
    empty = Graph(inputs=(), parameters=(), nodes=(), outputs=())
    work = Workload(graph=empty, flops=row["flops"], least_bytes=row["least_bytes"])
    is_product = row["group"] == "products"
    return ProblemFacts(
        workload_class=WorkloadClass.MATMUL if is_product else WorkloadClass.ELEMENTWISE,
        full=work, scaled=work, dtype="float16" if is_product else "float32",
    )  # fmt: skip


def diagnosed(row, profile):
    seen = Evaluation(outcome=Judged(verdict=Verdict.PASSED), summary="", device="", profile=profile)
    return diagnose(facts_of(row), seen, DEVICE)


def planted(group, role):
    row = next(row for row in TOLD["large"] if (row["group"], row["role"]) == (group, role))
    return launched(group, row["name"])


def cause_of(group):
    text = (PLANTED / f"{group}.py").read_text()
    return (
        next(line for line in text.splitlines() if line.startswith("FAULT, CAUSE"))
        .rpartition('"')[0]
        .rpartition('"')[2]
    )


def planted_lines(group):
    text = (PLANTED / f"{group}.py").read_text()
    return {number for number, line in enumerate(text.splitlines(), start=1) if "# planted" in line}
