"""Landscape of strategies with known effects: an author, and a GPU that exists only here.

A kernel of the landscape is the set of strategies that it carries out, written in its first line. Its time
follows from that set, so a test or a benchmark knows what any search could have found.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.evaluation import Evaluation, Judged, Tier, Verdict
from cutegen_nb.core.library import Library
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.round import Prompt, Reply, Usage
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy, StrategySource
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.testing import examples

_DOES = re.compile(r"^# does: (?P<names>.*)$", re.MULTILINE)
_FAILED = "wrong"
"""Mark in the first line of a kernel that does not pass."""
_NOISE = 0.002
"""Half-width of the interval of a speedup, as a fraction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landscape:
    """Strategies with their effects, and the time of every combination."""

    menu: tuple[Strategy, ...]
    """Strategies that the author can be asked for."""
    time_ms: Callable[[frozenset[str]], float]
    """Time of a kernel in ms, by the names of the strategies that it carries out."""
    blocked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Strategies that, once in a kernel, keep an author from adding others to it in one step. A crossover
    rewrites the kernel from both ideas and is not held up."""
    claims_only: frozenset[str] = frozenset()
    """Strategies that the author says it carries out, and whose code does not."""
    invents: tuple[str, ...] = ()
    """Names of the strategies that the author states itself, in order."""

    def kernel(self, names: frozenset[str] | set[str]) -> str:
        """Source of the kernel that carries out `names`."""
        return f"# does: {', '.join(sorted(names))}\nclass ModelNew:\n    pass\n"


def carried_out(source: str) -> frozenset[str]:
    """Names of the strategies in the first line of a kernel."""
    found = _DOES.search(source)
    return frozenset(name for name in (found["names"] if found else "").split(", ") if name)


class LandscapeAuthor:
    """Author that writes kernels of a landscape: it adds the strategy that it is asked for."""

    name = "landscape"

    def __init__(self, landscape: Landscape) -> None:
        self._landscape = landscape
        self._invented = 0
        self.prompts: list[Prompt] = []
        """All requests, in order."""

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:  # noqa: ARG002 - the port's
        """Return the landscape's menu."""
        return self._landscape.menu

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:  # noqa: ARG002 - the port's
        """Answer a request. Raises Declined where a strategy of its own is asked for and none is left."""
        self.prompts.append(prompt)
        await asyncio.sleep(0)  # lets the other slots of an epoch go on, as a real request would
        answers = {"cross": self._crossed, "invent": self._stated, "align": self._aligned}
        text = answers.get(prompt.purpose, self._kernel)(prompt, session)
        return Reply(text=text, usage=Usage(input_tokens=100, output_tokens=10))

    def _kernel(self, prompt: Prompt, session: Session) -> str:
        before = carried_out(prompt.parent.source) if prompt.parent else frozenset[str]()
        wanted: set[str] = set()
        if prompt.strategy is not None:
            known = {item.strategy.identity: item.strategy for item in session.rounds if item.strategy}
            parts = [known[identity].name for identity in prompt.strategy.parents if identity in known]
            recalled = [item.name for item in self._landscape.menu if _names(prompt.strategy, item.name)]
            wanted = {*parts} or {*recalled} or {prompt.strategy.name}
            if not parts:
                wanted = {
                    name for name in wanted if not before & self._landscape.blocked.get(name, frozenset())
                }
        does = (before | wanted) - self._landscape.claims_only
        return (
            f"Rationale: adds {', '.join(sorted(wanted))}.\n\n```python\n{self._landscape.kernel(does)}```\n"
        )

    def _crossed(self, prompt: Prompt, session: Session) -> str:
        base = carried_out(prompt.parent.source) if prompt.parent else frozenset[str]()
        labels = {f"r{item.number}": item.candidate for item in session.rounds if item.candidate}
        both = [carried_out(labels[label].source) for label in prompt.crossed if label in labels]
        named = sorted(frozenset().union(*both))
        brought = [name for name in named if name not in base] or named
        return (
            f"Strategy: both-{len(session.epochs)}-{'-'.join(brought)[:24]}\n"
            f"Statement: Keep the base and add {', '.join(brought)}.\nCombines: {', '.join(brought)}\n"
        )

    def _stated(self, prompt: Prompt, session: Session) -> str:  # noqa: ARG002 - as the other answers
        if self._invented >= len(self._landscape.invents):
            raise Declined("the landscape holds no further strategy")
        name = self._landscape.invents[self._invented]
        self._invented += 1
        return f"Strategy: {name}\nStatement: Do {name}.\n"

    def _aligned(self, prompt: Prompt, session: Session) -> str:  # noqa: ARG002 - as the other answers
        name = prompt.strategy.name if prompt.strategy else "nothing"
        return f"Done: {name} is carried out.\n"


def _names(strategy: Strategy, name: str) -> bool:
    """Return whether a strategy of the history has `name` as one of its steps."""
    return strategy.source == StrategySource.HISTORY and f") {name}: " in strategy.statement


class LandscapeEvaluator:
    """Evaluator that times a kernel by its landscape, as a GPU without noise."""

    def __init__(self, landscape: Landscape) -> None:
        self._landscape = landscape
        self.evaluated: list[str] = []
        """Digests of the evaluated candidates, in order."""

    async def facts(self, problem: Problem, progress: Progress) -> ProblemFacts:  # noqa: ARG002 - the port's
        """Return the facts of the example problem."""
        return examples.relu_facts()

    async def device(self) -> Device:
        """Return a GPU with the ceilings of an A100."""
        return replace(examples.simulated_device(), kind=DeviceKind.GPU, source="landscape")

    async def evaluate(  # noqa: PLR0913 - the port's
        self,
        problem: Problem,  # noqa: ARG002 - the port's
        candidate: Candidate,
        progress: Progress,
        tier: Tier = Tier.A,
        *,
        profile: bool = False,  # noqa: ARG002 - the port's
        rival: Candidate | None = None,
        only_if_faster: bool = False,  # noqa: ARG002 - the port's
    ) -> Evaluation:
        """Time a kernel beside its rival."""
        progress("timing on the landscape")
        await asyncio.sleep(0)
        self.evaluated.append(candidate.digest)
        if _FAILED in candidate.source.splitlines()[0]:
            return examples.failed(Verdict.WRONG_VALUES, "All outputs are wrong.")
        return Evaluation(
            outcome=Judged(verdict=Verdict.PASSED),
            summary="All outputs match the reference.",
            device="landscape",
            candidate_digest=candidate.digest,
            tier=tier,
            timing=self._timing(candidate, rival),
            duration_s=1.0,
        )

    def _timing(self, candidate: Candidate, rival: Candidate | None) -> Timing:
        time_ms = self._landscape.time_ms(carried_out(candidate.source))
        eager_ms = self._landscape.time_ms(frozenset())
        rival_ms = self._landscape.time_ms(carried_out(rival.source)) if rival else 0.0
        return Timing(
            median_ms=time_ms,
            samples_ms=(time_ms,),
            baselines=(_paired("eager", eager_ms, time_ms),),
            bandwidth_bytes_per_s=1.5e12,
            rival=_paired("rival", rival_ms, time_ms) if rival else None,
            rival_digest=rival.digest if rival else "",
        )

    async def count(self, problem: Problem, candidate: Candidate, progress: Progress) -> Profile:  # noqa: ARG002 - the port's
        """Return counts that are the same for every kernel."""
        found = examples.passed(100).profile
        assert found is not None
        return found

    async def close(self) -> None:
        """Do nothing: no process was started."""


def _paired(name: str, other_ms: float, time_ms: float) -> BaselineTiming:
    ratio = other_ms / time_ms
    return BaselineTiming(
        name=name,
        median_ms=other_ms,
        speedup=ratio,
        speedup_low=ratio * (1 - _NOISE),
        speedup_high=ratio * (1 + _NOISE),
    )


def additive(gains: Mapping[str, float], *, first_ms: float = 8.0) -> Callable[[frozenset[str]], float]:
    """Return the time of a kernel whose strategies each multiply the speed; unknown ones do nothing."""

    def time_ms(names: frozenset[str]) -> float:
        speed = 1.0
        # Sorted: the order of a set differs between processes, and with it the last digits of a product.
        for name in sorted(names):
            speed *= gains.get(name, 1.0)
        return first_ms / speed

    return time_ms


def strategies_named(names: Sequence[str]) -> tuple[Strategy, ...]:
    """Menu of strategies with these names, which fit every problem."""
    return tuple(Strategy(name=name, statement=f"Carry out {name}.") for name in names)
