"""Sessions as people would have them: real-looking kernels, failures, repairs, a rejection."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from html.parser import HTMLParser

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Correctness, Evaluation, Judged, OutputComparison, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.graph import Graph, Node, Ref, TensorSpec, Value
from cutegen_nb.core.problem import Problem, ProblemFacts, ProblemForm, Rewrite, Workload, WorkloadClass
from cutegen_nb.core.profile import Counters, LaunchProfile, LineCounters, Profile, ProfileSource
from cutegen_nb.core.round import Action, Attempt, Decision, Prompt, Reply, Round, Usage
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Direction, ExpectedEffect, Strategy
from cutegen_nb.core.timing import BaselineTiming, Timing

PROBLEM = '''import torch
import torch.nn as nn

batch_size = 4096
dim = 393216


class Model(nn.Module):
    """A GELU over a large matrix."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x, approximate="tanh")


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []
'''

NAIVE = '''import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cutlass.cute.runtime import from_dlpack

THREADS = 256


@cute.kernel
def gelu_kernel(gX: cute.Tensor, gY: cute.Tensor, count: cutlass.Int32):
    """One element a thread, a column at a time."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    bdim, _, _ = cute.arch.block_dim()
    index = (bidx * bdim + tidx) * 8
    if index < count:
        x = gX[index]
        inner = 0.7978845608 * (x + 0.044715 * x * x * x)
        gY[index] = 0.5 * x * (1.0 + cute.math.tanh(inner))


@cute.jit
def launch(mX: cute.Tensor, mY: cute.Tensor, count: cutlass.Int32):
    grid = (count + THREADS - 1) // THREADS
    gelu_kernel(mX, mY, count).launch(grid=[grid, 1, 1], block=[THREADS, 1, 1])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = None

    def forward(self, x):
        y = torch.empty_like(x)
        mX, mY = from_dlpack(x.view(-1)), from_dlpack(y.view(-1))
        if self.compiled is None:
            self.compiled = cute.compile(launch, mX, mY, x.numel())
        self.compiled(mX, mY, x.numel())
        return y
'''

COALESCED = NAIVE.replace(
    '"""One element a thread, a column at a time."""', '"""Neighbouring threads, neighbouring elements."""'
).replace("(bidx * bdim + tidx) * 8", "bidx * bdim + tidx")

VECTOR = (
    COALESCED.replace("THREADS = 256\n", "THREADS = 256\nWIDTH = 4  # 4 × fp32 = 128 bits\n")
    .replace(
        """    index = bidx * bdim + tidx
    if index < count:
        x = gX[index]
        inner = 0.7978845608 * (x + 0.044715 * x * x * x)
        gY[index] = 0.5 * x * (1.0 + cute.math.tanh(inner))
""",
        """    vector = bidx * bdim + tidx
    if vector * WIDTH < count:
        tXgX = cute.local_tile(gX, (WIDTH,), (vector,))
        tYgY = cute.local_tile(gY, (WIDTH,), (vector,))
        x = tXgX.load()
        inner = 0.7978845608 * (x + 0.044715 * x * x * x)
        tYgY.store(0.5 * x * (1.0 + cute.math.tanh(inner)))
""",
    )
    .replace("grid = (count + THREADS - 1) // THREADS", "grid = (count // WIDTH + THREADS - 1) // THREADS")
    .replace(
        "Neighbouring threads, neighbouring elements.", "128-bit loads and stores, four elements a thread."
    )
)

OFF_BY_ONE = VECTOR.replace("if vector * WIDTH < count:", "if vector * WIDTH < count - WIDTH:")
STRIDE = VECTOR.replace(
    "128-bit loads and stores, four elements a thread.", "Persistent CTAs walk the tensor."
)

FILE = "/scratch/candidate_0.py"
ELEMENTS = 1 << 20


def line_of(source: str, text: str) -> int:
    return next(n for n, line in enumerate(source.splitlines(), start=1) if text in line)


def workload(rows: int, columns: int, rewrites: tuple[Rewrite, ...] = ()) -> Workload:
    spec = TensorSpec(shape=(rows, columns), dtype="float32", strides=(columns, 1))
    node = Node(name="gelu", op="aten.gelu.default", args=(Ref("x"),), kwargs=(), outputs=(spec,))
    graph = Graph(
        inputs=(Value(name="x", spec=spec, path="0"),), parameters=(), nodes=(node,), outputs=(Ref("gelu"),)
    )
    size = rows * columns
    return Workload(graph=graph, flops=8 * size, least_bytes=8 * size, rewrites=rewrites)


FACTS = ProblemFacts(
    workload_class=WorkloadClass.ELEMENTWISE,
    full=workload(4096, 393216),
    scaled=workload(
        256,
        4096,
        (
            Rewrite(line=4, column=13, full=4096, scaled=256),
            Rewrite(line=5, column=6, full=393216, scaled=4096),
        ),
    ),
    dtype="float32",
)

SIMULATOR = Device(
    kind=DeviceKind.SIMULATOR,
    name="NVIDIA H200",
    architecture="sm_90a",
    bandwidth_bytes_per_s=4.8e12,
    peak_flops={"cuda.f32": 66.9e12, "tensor.tf32": 494e12, "tensor.f16": 989e12},
    source="H200 data sheet",
    sm_count=132,
)
GPU = replace(
    SIMULATOR,
    kind=DeviceKind.GPU,
    bandwidth_bytes_per_s=4.28e12,
    source="measured 2026-11-21",
    driver="580.159",
)


def profile(source: str, sectors_per_ideal: int, warp_instructions: int, load: str, store: str) -> Profile:
    ideal = ELEMENTS * 4 // 32
    sectors = ideal * sectors_per_ideal
    size = ELEMENTS * 4
    each = warp_instructions // 3
    loads = Counters(
        warp_instructions=each,
        thread_instructions=each * 32,
        gmem_load_bytes=size,
        gmem_load_sectors=sectors,
        gmem_ideal_sectors=ideal,
        gmem_requests=sectors // 4,
    )
    stores = Counters(
        warp_instructions=each,
        thread_instructions=each * 32,
        gmem_store_bytes=size,
        gmem_store_sectors=sectors,
        gmem_ideal_sectors=ideal,
        gmem_requests=sectors // 4,
        branches=32,
        divergent_branches=1,
    )
    math = Counters(
        warp_instructions=warp_instructions - 2 * each,
        thread_instructions=(warp_instructions - 2 * each) * 32 - 124,
        flops={"cuda.f32": 9 * ELEMENTS},
    )
    lines = (
        LineCounters(file=FILE, line=line_of(source, load), counters=loads),
        LineCounters(file=FILE, line=line_of(source, "inner ="), counters=math),
        LineCounters(file=FILE, line=line_of(source, store), counters=stores),
        LineCounters(
            file="/x/site-packages/cutlass/cute/core.py",
            line=12,
            counters=Counters(warp_instructions=96, thread_instructions=3072),
        ),
    )
    total = Counters()
    for item in lines:
        total += item.counters
    launch = LaunchProfile(
        kernel="kernel_gelu_kernel_TensorgmemofloatoTensorgmemofloat",
        grid=(ELEMENTS // 1024, 1, 1),
        block=(256, 1, 1),
        dynamic_smem_bytes=0,
        counters=total,
        lines=lines,
        gmem_distinct_sectors=2 * ideal,
    )
    return Profile(source=ProfileSource.SIMULATED, device="sm_90a", launches=(launch,))


def correctness(*, good: bool = True) -> Correctness:
    output = OutputComparison(
        index=0,
        shape=(256, 4096),
        dtype="float32",
        matches=good,
        max_abs_error=2.4e-7 if good else 0.8411,
        relative_l2_error=8.1e-8 if good else 0.00112,
        reference_relative_l2_error=7.6e-8,
        tolerance_abs=1e-6,
        tolerance_rel=1e-5,
        tolerance_l2=6.1e-7,
        bad_fraction=0.0 if good else 4 / ELEMENTS,
        first_bad=None if good else (255, 4092),
        first_bad_values=None if good else (float("nan"), 0.8411),
        pattern=""
        if good
        else "The last 4 elements of the last row were never written: the tail is cut short.",
    )
    return Correctness(
        seeds=(71930211, 5583),
        outputs=(output,),
        checks=("shape", "dtype", "fp64 oracle", "poisoned outputs", "inputs unchanged", "run twice"),
        checks_not_run=("racecheck: the kernel uses no shared memory",),
    )


def passed(found: Profile | None, timing: Timing | None = None) -> Evaluation:
    return Evaluation(
        outcome=Judged(verdict=Verdict.PASSED),
        summary="All outputs match the reference within the gates.",
        device="sm_90a",
        correctness=correctness(),
        profile=found,
        timing=timing,
        duration_s=1.31,
    )


WRONG = Evaluation(
    outcome=Judged(verdict=Verdict.WRONG_VALUES),
    summary="4 of 1,048,576 elements of output 0 are wrong; the first is [255, 4092].",
    device="sm_90a",
    findings=(
        Finding(
            kind="wrong-values",
            message="The last vector is skipped: the condition leaves out the last WIDTH elements.",
            line=line_of(OFF_BY_ONE, "count - WIDTH"),
            column=8,
            cta=(1023, 0, 0),
            thread=(255, 0, 0),
        ),
        Finding(kind="magic-constant", message="0.7978845608 is √(2/π).", severity=Severity.FLAG, line=19),
    ),
    correctness=correctness(good=False),
    log="compiled launch in 0.31 s\n",
)

BROKEN = Evaluation(
    outcome=Judged(verdict=Verdict.COMPILE_FAILED),
    summary="The DSL refused line 17: unexpected type for 'index'.",
    device="sm_90a",
    findings=(Finding(kind="compile", message="expects Int32, but got <class 'float'>", line=17, column=5),),
    log="Traceback (most recent call last):\n  File candidate.py, line 17\nDSLRuntimeError: expects Int32\n",
)


def strategy(name: str, statement: str, *effects: tuple[str, Direction]) -> Strategy:
    return Strategy(
        name=name,
        statement=statement,
        effects=tuple(ExpectedEffect(counter=counter, direction=way) for counter, way in effects),
    )


def candidate(source: str, parent: Candidate | None, plan: Strategy | None, rationale: str) -> Candidate:
    return Candidate(
        source=source,
        author="openai:demo-model",
        parents=(parent.digest,) if parent else (),
        strategy=plan,
        rationale=rationale,
    )


def attempt(purpose: str, made: Candidate | None, result: Evaluation | None, problem: str = "") -> Attempt:
    plan = made.strategy if made else None
    prompt = Prompt(
        system="You write CuTe DSL kernels in KernelBench's ModelNew form.",
        user=f"Problem:\n\n{PROBLEM}\nStrategy: {plan.statement if plan else 'any correct kernel'}\n",
        digest="0" * 64,
        strategy=plan,
    )
    text = f"Here it is.\n```python\n{made.source}```" if made else "I would rather talk about the weather."
    reply = Reply(text=text, usage=Usage(input_tokens=2113, output_tokens=904, seconds=11.2))
    return Attempt(
        purpose=purpose, prompt=prompt, reply=reply, problem=problem, candidate=made, evaluation=result
    )


def approved(by: str = "policy:auto", reason: str = "") -> Decision:
    return Decision(gate="revision", action=Action.APPROVE, by=by, reason=reason)


def finished(
    number: int,
    attempts: tuple[Attempt, ...],
    comparison: Comparison | None,
    *decisions: Decision,
    plan: Strategy | None = None,
    note: str = "",
) -> Round:
    return Round(
        number=number,
        stage=Stage.STRUCTURE if number else Stage.CORRECT,
        strategy=plan,
        attempts=attempts,
        comparison=comparison,
        decisions=decisions,
        started_at=f"2026-11-21T06:{10 + number:02}:00Z",
        seconds=14.2 + number,
        note=note,
    )


def make_session(*rounds: Round, device: Device = SIMULATOR, stopped: str = "") -> Session:
    return Session(
        name="gelu",
        problem=Problem(
            name="gelu", source=PROBLEM, form=ProblemForm.KERNELBENCH, path="/home/me/26_GELU_.py"
        ),
        facts=FACTS,
        device=device,
        author="openai:demo-model",
        budget=Budget(rounds=6),
        created_at="2026-11-21T06:10:00Z",
        rounds=rounds,
        stopped=stopped,
    )


def five_rounds() -> Session:
    first = candidate(NAIVE, None, None, "The simplest kernel that is right: one thread, one element.")
    broken = candidate(NAIVE.replace("tidx) * 8", "tidx) / 8"), None, None, "")
    r0 = finished(
        0,
        (
            attempt("generate", broken, BROKEN),
            attempt("repair", first, passed(profile(NAIVE, 8, 720_000, "x = gX", "gY[index]"))),
        ),
        Comparison(
            relation=Relation.FIRST,
            reason="The first passing revision: 2,097,152 global sectors; bytes moved 8.00× the least.",
        ),
        approved(),
    )
    coalesce = strategy(
        "coalesce",
        "Let neighbouring threads of a warp touch neighbouring elements, so that a warp's request fills whole sectors.",
        ("gmem_sectors", Direction.DOWN),
    )
    second = candidate(
        COALESCED,
        first,
        coalesce,
        "The factor 8 in the index spread a warp over 32 sectors. Without it a warp reads 128 contiguous bytes.",
    )
    r1 = finished(
        1,
        (attempt("optimise", second, passed(profile(COALESCED, 1, 720_000, "x = gX", "gY[index]"))),),
        Comparison(
            relation=Relation.LESS_WORK,
            reason="global sectors 2,097,152 → 262,144 (−87.5 %); bytes moved 1.00× the least.",
            against=first.digest,
        ),
        approved("person:ada", "Exactly what the line view asked for."),
        plan=coalesce,
    )
    vectorise = strategy(
        "vectorise-128",
        "Load and store 128 bits a thread, so that one instruction moves four elements.",
        ("warp_instructions", Direction.DOWN),
        ("gmem_requests", Direction.DOWN),
        ("latency_ms", Direction.DOWN),
    )
    wrong = candidate(OFF_BY_ONE, second, vectorise, "")
    third = candidate(
        VECTOR,
        second,
        vectorise,
        "Four fp32 fill 128 bits.\nThe tail is safe because the element count is a multiple of 4.",
    )
    r2 = finished(
        2,
        (
            attempt("optimise", None, None, "The reply holds no source and no edits."),
            attempt("optimise", wrong, WRONG),
            attempt("repair", third, passed(profile(VECTOR, 1, 291_000, "tXgX.load", "tYgY.store"))),
        ),
        Comparison(
            relation=Relation.LESS_WORK,
            reason="warp instructions 720,096 → 291,096 (−59.6 %); bytes moved 1.00× the least.",
            against=second.digest,
        ),
        approved("person:ada"),
        plan=vectorise,
    )
    stride = strategy(
        "grid-stride",
        "Launch as many CTAs as fill the GPU and let each walk the tensor.",
        ("warp_instructions", Direction.DOWN),
    )
    fourth = candidate(STRIDE, third, stride, "Fewer CTAs, longer lives.")
    r3 = finished(
        3,
        (attempt("optimise", fourth, passed(profile(STRIDE, 1, 302_000, "tXgX.load", "tYgY.store"))),),
        Comparison(
            relation=Relation.MORE_WORK,
            reason="warp instructions 291,096 → 302,096 (+3.8 %); bytes moved 1.00× the least.",
            against=third.digest,
        ),
        Decision(
            gate="revision",
            action=Action.REJECT,
            by="person:ada",
            reason="More instructions for no fewer bytes.",
        ),
        plan=stride,
    )
    unroll = strategy(
        "several-in-flight",
        "Issue several independent vector loads before the first is used.",
        ("warp_instructions", Direction.DOWN),
    )
    fifth = candidate(OFF_BY_ONE.replace("WIDTH = 4", "WIDTH = 8"), third, unroll, "Eight elements a thread.")
    r4 = finished(
        4, (attempt("optimise", fifth, WRONG),), None, plan=unroll, note="The repair budget of 2 is spent."
    )
    return make_session(r0, r1, r2, r3, r4, stopped="Two rounds in a row brought nothing better.")


def timing(median_ms: float, speedup: float) -> Timing:
    return Timing(
        median_ms=median_ms,
        samples_ms=tuple(median_ms * (1 + 0.002 * (i % 7 - 3)) for i in range(50)),
        baselines=(
            BaselineTiming(
                name="eager",
                median_ms=median_ms * speedup,
                speedup=speedup,
                speedup_low=speedup * 0.996,
                speedup_high=speedup * 1.004,
            ),
            BaselineTiming(
                name="torch.compile",
                median_ms=3.019,
                speedup=3.019 / median_ms,
                speedup_low=3.0 / median_ms,
                speedup_high=3.03 / median_ms,
            ),
        ),
        bandwidth_bytes_per_s=4.28e12,
        compile_s=0.42,
    )


def gpu_rounds() -> Session:
    first = candidate(COALESCED, None, None, "One element a thread.")
    r0 = finished(
        0,
        (attempt("generate", first, passed(None, timing(4.71, 0.645))),),
        Comparison(relation=Relation.FIRST, reason="The first passing revision: 4.71 ms, 0.65× over eager."),
        approved(),
    )
    vectorise = strategy("vectorise-128", "Load and store 128 bits a thread.", ("latency_ms", Direction.DOWN))
    second = candidate(VECTOR, first, vectorise, "Four fp32 fill 128 bits.")
    r1 = finished(
        1,
        (attempt("optimise", second, passed(None, timing(3.07, 0.989))),),
        Comparison(
            relation=Relation.FASTER,
            reason="1.53× the speed of the best before it, 95 % interval 1.52–1.55.",
            against=first.digest,
        ),
        approved("person:ada"),
        plan=vectorise,
    )
    return make_session(r0, r1, device=GPU)


@pytest.fixture(scope="session")
def session() -> Session:
    return five_rounds()


@pytest.fixture(scope="session")
def gpu_session() -> Session:
    return gpu_rounds()


@pytest.fixture(scope="session")
def empty_session() -> Session:
    return make_session(stopped="The author declined: attention is not among the graphs it can write.")


class Reader(HTMLParser):
    """Tags, text and unclosed elements of a piece of HTML."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "img", "source", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def shown(self) -> str:
        return "".join(self.text)


PAYLOADS = (
    '<img src=x onerror="window.__x=1">',
    "<script>window.__x=1</script>",
    "</pre></table></details><script>window.__x=1</script>",
    '<a href="javascript:window.__x=1">go</a>',
    '"><button data-commandlinker-command="x">b</button>',
    "</style></title></svg><svg onload=window.__x=1>",
    "' onmouseover='window.__x=1",
    "<!--",
)
NAMES = (
    "html head meta title style body header main footer section h1 h2 h3 p b span a ul ol li dl dt dd div code "
    "pre table caption thead tbody tr th td details summary figure figcaption picture source img ins del "
    "blockquote svg g path circle text tspan desc rect line br"
)
TAGS = frozenset(NAMES.split())
REFERENCES = frozenset({
    "digest", "candidate_digest", "problem_digest", "parents", "against", "members", "best", "challenger",
    "holder", "counter", "architecture", "op", "format", "edited", "gate", "file", "path", "dtype", "kernel",
})  # fmt: skip
"""Fields that are names of other values, or keys of tables: a page looks something up by them."""


def poisoned(value, payload, keep=REFERENCES):
    """The same value with the payload in every text of it, at any depth, but for `keep`."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return payload
    if isinstance(value, tuple | list):
        return type(value)(poisoned(item, payload, keep) for item in value)
    if isinstance(value, dict):
        return {key: poisoned(item, payload, keep) for key, item in value.items()}
    if is_dataclass(value):
        texts = {
            item.name: poisoned(getattr(value, item.name), payload, keep)
            for item in fields(value)
            if item.init and item.name not in keep
        }
        return replace(value, **texts)
    return value


@pytest.fixture(scope="session")
def read():
    """Reader of HTML."""
    return Reader


@pytest.fixture(scope="session")
def poison():
    """Function that puts a text into every text of a value."""
    return poisoned


@pytest.fixture(params=PAYLOADS)
def payload(request):
    """Text that would be markup or script if it were not escaped."""
    return request.param


@pytest.fixture(scope="session")
def harmless():
    """Function that asserts that HTML holds a payload as text alone, and returns how often it is shown."""

    def check(page: str, payload: str) -> int:
        found = Reader(page)
        for tag, attributes in found.tags:
            assert tag in TAGS, tag
            assert not [name for name in attributes if name.startswith(("on", "data-"))]
            assert not (attributes.get("href") or "#").strip().lower().startswith(("javascript:", "data:"))
            for name in ("src", "srcset"):
                assert (attributes.get(name) or "data:image/png;base64,").startswith("data:image/png;base64,")
        assert found.open == []
        return found.shown.count(payload)

    return check
