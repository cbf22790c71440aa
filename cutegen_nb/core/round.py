"""One round of a session: prompt, reply, candidate, evaluation and decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.search.comparison import Comparison
from cutegen_nb.core.search.population import Duel, Slot
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Alignment, Direction, Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens, time and price of requests to an author."""

    input_tokens: int = 0
    """Tokens of the prompt; 0 for an author that counts none."""
    output_tokens: int = 0
    """Tokens of the reply, reasoning included."""
    seconds: float = 0.0
    """Wall time in seconds."""
    cached_tokens: int = 0
    """Part of `input_tokens` that the server had cached and charges less for."""
    reasoning_tokens: int = 0
    """Part of `output_tokens` spent on reasoning outside the answer."""
    cost_usd: float | None = None
    """Cost in US dollars at the price in the author's profile; None when no price is known."""
    estimated: bool = False
    """True if the tokens are estimated from the number of characters, because the server counted none."""

    def __add__(self, other: Usage) -> Usage:
        """Add two usages. The cost sums known prices; None when neither is known."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=round(self.seconds + other.seconds, 3),
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost_usd=sum(costs) if costs else None,
            estimated=self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Request to an author."""

    system: str
    """System message: standing instructions."""
    user: str
    """User message: the request of this round."""
    digest: str
    """SHA-256 of both messages."""
    strategy: Strategy | None = None
    """The requested optimisation."""
    parent: Candidate | None = None
    """Candidate to start from."""
    purpose: str = "optimise"
    """``generate``, ``optimise``, ``diagnose``, ``repair``; ``cross``, ``invent`` or ``align`` for a strategy
    in words; ``reply`` for the same request again."""
    stage: Stage | None = None
    """Stage of the prompt; None for a diagnosis, a repair or an alignment, which occur in every stage."""
    templates: str = ""
    """SHA-256 of the person's own template files; empty with the shipped templates alone."""
    steering: str = ""
    """A person's words that the request passes on; empty without any."""
    crossed: tuple[str, ...] = ()
    """Revisions whose strategies a ``cross`` combines: ``("r3", "r5")``; the first of them is changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedChange:
    """Predicted change of one counter."""

    counter: str
    """Field of :class:`~cutegen_nb.core.profile.Counters`, or ``latency_ms``."""
    direction: Direction | None = None
    """Predicted direction; None when not stated, and where no change is predicted."""
    change_fraction: float | None = None
    """Predicted change as a share of the parent's value, 0–1 for a fall; 0 where no change is predicted; None
    when not stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """An author's prediction for its candidate, stated before the measurement."""

    text: str
    """Prediction in the author's words."""
    counter: str = ""
    """Field of :class:`~cutegen_nb.core.profile.Counters`, or ``latency_ms``; empty when none is named."""
    direction: Direction | None = None
    """Predicted direction of change; None when not stated."""
    change_fraction: float | None = None
    """Predicted change as a share of the parent's value, 0–1 for a fall; 0 where no change is predicted; None
    when not stated."""
    speedup: float | None = None
    """Predicted speed-up, parent's latency ÷ candidate's; None when not stated."""
    others: tuple[PredictedChange, ...] = ()
    """Predictions for counters named after `counter`; empty in sessions older than this field."""

    @property
    def changes(self) -> tuple[PredictedChange, ...]:
        """Every counter with its predicted change, in the order of the author's words."""
        if not self.counter:
            return self.others
        main = PredictedChange(
            counter=self.counter, direction=self.direction, change_fraction=self.change_fraction
        )
        return (main, *self.others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Answer of an author, verbatim."""

    text: str
    """Text of the answer."""
    usage: Usage
    """Cost of the request."""
    finish_reason: str = "stop"
    """The server's finish reason: ``stop``, ``length``, ``content_filter``; ``incomplete`` for a broken
    stream."""
    reasoning: str = ""
    """Reasoning of the model before its answer, where the server shows it; never parsed."""
    notes: tuple[str, ...] = ()
    """Sentences on repeated requests and on settings that the server refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReply:
    """Failure of an author to reply, after which its round went on."""

    reason: str
    """The author's error, in words."""
    declined: bool
    """True where the author, or the person who was to bring the reply, would not give one."""


class StrategyEnd(StrEnum):
    """Answer of an author that carries out no strategy."""

    ALREADY_DONE = "already done"
    """The kernel carries out the strategy already."""
    CANNOT_APPLY = "cannot apply"
    """The strategy is impossible for this problem or kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedStrategy:
    """Strategy that an author ended with a reason instead of code."""

    strategy: Strategy
    """The requested strategy."""
    end: StrategyEnd
    """Kind of the answer."""
    reason: str
    """Reason in the author's words, in a sentence."""

    @property
    def text(self) -> str:
        """Name, answer and reason: ``vectorise-128: already done (every access has 128 bits)``."""
        return f"{self.strategy.name}: {self.end.value} ({self.reason.rstrip('.')})"


def ended_text(ended: Iterable[EndedStrategy]) -> str:
    """Texts of ended strategies, those of one answer together: ``tiles, split: cannot apply (no rows)``."""
    alike: dict[str, list[str]] = {}
    for item in ended:
        answer = item.text.removeprefix(f"{item.strategy.name}: ")
        alike.setdefault(answer, []).append(item.strategy.name)
    return "; ".join(f"{', '.join(dict.fromkeys(names))}: {answer}" for answer, names in alike.items())


def is_ended_strategy(text: str) -> bool:
    """Return whether a text is that of an `EndedStrategy`, as progress tells it."""
    return any(f": {end.value} (" in text for end in StrategyEnd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One exchange with an author inside a round. Every attempt is kept."""

    purpose: str
    """Purpose of the prompt; ``edit`` for a person's own source, ``restore`` for an earlier version of the
    round's kernel that a person went back to."""
    prompt: Prompt
    """The prompt."""
    reply: Reply | None
    """The reply; None when the author failed."""
    problem: str = ""
    """Reason why the reply could not be used, or the author's error; empty for a usable reply."""
    candidate: Candidate | None = None
    """Candidate from the reply."""
    evaluation: Evaluation | None = None
    """Evaluation of that candidate."""
    prediction: Prediction | None = None
    """The author's prediction; None when it made none."""
    ended: EndedStrategy | None = None
    """Strategy that the reply ends instead of carrying it out; None for any other reply."""


def opening(attempts: Sequence[Attempt]) -> Attempt:
    """Return the first exchange on the strategy that a round carried out: the one after the last ended.

    The last exchange of a round in which the author carried out none. Raises ValueError without attempts.
    """
    if not attempts:
        raise ValueError("a round without attempts has no opening")
    after = max((place for place, attempt in enumerate(attempts, start=1) if attempt.ended), default=0)
    return attempts[min(after, len(attempts) - 1)]


class Action(StrEnum):
    """Decision of a person or a policy."""

    APPROVE = "approve"
    """Send the prompt, or build on the revision."""
    REJECT = "reject"
    """Do not build on the revision."""
    STEER = "steer"
    """Add a request in words."""
    EDIT = "edit"
    """Replace the prompt or the source."""
    BRANCH = "branch"
    """Continue from another revision."""
    OVERRULE = "overrule"
    """Build on the candidate despite its verdict; the reason is recorded."""
    STOP = "stop"
    """End the session."""
    PIN = "pin"
    """Keep a member of the population, whatever selection says."""
    DROP = "drop"
    """Remove a member from the population."""
    REQUEST = "request"
    """Try a strategy that a person wrote, in the next epoch."""
    FORBID = "forbid"
    """Try a strategy no more."""
    BUDGET = "budget"
    """Change the number of epochs or the size of the population."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One decision at a gate."""

    gate: str
    """``prompt``, ``revision`` or ``epoch``."""
    action: Action
    """The action."""
    by: str
    """Decider: ``policy:auto`` or ``person:NAME``."""
    reason: str = ""
    """Text given with the decision: why rejected, or the steering text."""
    edited: str = ""
    """For EDIT: the new prompt or source. For BRANCH, PIN and DROP: the revision. For FORBID: the strategy's
    name. For REQUEST: the strategy's name and statement, ``name: statement``. For BUDGET: ``epochs=N`` or
    ``population=N``."""
    seconds: float = 0.0
    """Seconds until the decision; a budget may count a person's."""
    parents: tuple[str, ...] = ()
    """For EDIT: digests of the revisions that the new source merges; empty for a source written by hand."""
    prediction: Prediction | None = None
    """At the prompt gate: the decider's own prediction of what the round will change; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One finished round, immutable."""

    number: int
    """Number of the round, from 0."""
    stage: Stage
    """Stage of the round."""
    strategy: Strategy | None
    """Optimisation of the round; None while the first passing kernel is sought."""
    attempts: tuple[Attempt, ...]
    """Every exchange, in order; the last candidate among them is the round's."""
    comparison: Comparison | None
    """Comparison with the best before; None when nothing passed."""
    decisions: tuple[Decision, ...]
    """Decisions at the gates, in order."""
    started_at: str
    """Start time: UTC, ISO 8601."""
    seconds: float
    """Wall time in seconds, waiting for a person included."""
    note: str = ""
    """Reason why the round, or the repair of its candidate, brought no kernel; empty otherwise."""
    stage_because: str = ""
    """Sentence on the end of the stage before, for the first round of a stage; empty otherwise."""
    chosen_because: str = ""
    """Sentence on the records of like problems that brought the strategy forward; empty where none did."""
    gpu_s: float = 0.0
    """Seconds that evaluations of this round held a GPU; 0 on the simulator."""
    parent_profile: Profile | None = None
    """Counts of the parent, taken in this round because its stage shows them. None where the parent had them
    already, or none were available."""

    slot: Slot | None = None
    """Place in an epoch of a population; None in a chain."""
    aligned: Alignment | None = None
    """The strategy as the code carries it out; None where nothing passed, and in a chain."""

    @property
    def title(self) -> str:
        """Name of its strategy; ``first kernel``, or ``no strategy stated`` where one was to be stated."""
        if self.strategy is not None:
            return self.strategy.name
        return "no strategy stated" if self.slot is not None else "first kernel"

    @property
    def candidate(self) -> Candidate | None:
        """The last candidate of the round."""
        return next((a.candidate for a in reversed(self.attempts) if a.candidate is not None), None)

    @property
    def evaluation(self) -> Evaluation | None:
        """Evaluation of the last candidate."""
        return next((a.evaluation for a in reversed(self.attempts) if a.candidate), None)

    @property
    def ended(self) -> tuple[EndedStrategy, ...]:
        """Strategies that the author ended in this round, in order."""
        return tuple(attempt.ended for attempt in self.attempts if attempt.ended is not None)

    @property
    def usage(self) -> Usage:
        """Sum of the usages of its replies."""
        return sum((a.reply.usage for a in self.attempts if a.reply), Usage())

    @property
    def approved(self) -> bool:
        """True if later rounds may build on the candidate: it stands and was approved, or was overruled."""
        decision = next((d for d in reversed(self.decisions) if d.gate == "revision"), None)
        evaluation = self.evaluation
        if decision is None or evaluation is None:
            return False
        if decision.action is Action.OVERRULE:
            return evaluation.may_be_overruled and bool(decision.reason.strip())
        return decision.action is Action.APPROVE and evaluation.stands


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One finished epoch of a population: the members that selection kept and the decisions at its gate."""

    number: int
    """Number of the epoch, from 1."""
    members: tuple[str, ...]
    """Digests of the kernels that the next epoch starts from, fastest first."""
    duels: tuple[Duel, ...] = ()
    """Comparisons that selection asked for."""
    decisions: tuple[Decision, ...] = ()
    """Decisions at the gate of the epoch, in order."""
    restarted: bool = False
    """True if the epochs before brought no gain: only the fastest member and the first kernel go on."""

    best: str = ""
    """Digest of the best kernel: the fastest of those shown to be faster than the best before the epoch, else
    that best itself; empty where it is no member any more."""

    @property
    def champion(self) -> str:
        """Digest of the best kernel, else of the fastest member; empty without members."""
        return self.best or (self.members[0] if self.members else "")
