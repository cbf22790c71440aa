"""One round: a prompt, a reply, a candidate, its evaluation, and what was decided."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Direction, Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a request to an author cost."""

    input_tokens: int = 0
    """Tokens of the prompt; 0 for an author that counts none."""
    output_tokens: int = 0
    """Tokens of the reply, those of its reasoning among them."""
    seconds: float = 0.0
    """Wall time."""
    cached_tokens: int = 0
    """Of `input_tokens`, those the server had already read and charges less for."""
    reasoning_tokens: int = 0
    """Of `output_tokens`, those spent on reasoning that is not part of the answer."""
    cost_usd: float | None = None
    """US dollars by the price in the author's profile; None when no price is known."""
    estimated: bool = False
    """Whether the tokens are a guess from the number of characters, because the server counted none."""

    def __add__(self, other: Usage) -> Usage:
        """Both together. The cost is that of what has a price; None when neither has one."""
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
    """What an author is asked."""

    system: str
    """Standing instructions."""
    user: str
    """The request of this round."""
    digest: str
    """SHA-256 of both."""
    strategy: Strategy | None = None
    """The optimisation asked for."""
    parent: Candidate | None = None
    """The candidate to work from."""
    purpose: str = "optimise"
    """``generate``, ``optimise``, ``diagnose``, ``repair``, or ``reply``: the same request again."""
    stage: Stage | None = None
    """The stage it belongs to; None for a diagnosis or a repair, which every stage may need."""
    templates: str = ""
    """SHA-256 of the person's own template files; empty with the shipped ones alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What an author expects of its candidate, said before it is measured."""

    text: str
    """As it was written."""
    counter: str = ""
    """Field of :class:`~cutegen_nb.core.profile.Counters`, or ``latency_ms``; empty when none is named."""
    direction: Direction | None = None
    """Which way it should move; None when that is not said."""
    change_fraction: float | None = None
    """By which share of the parent's value, 0–1 for a fall; None when that is not said."""
    speedup: float | None = None
    """Parent's latency ÷ candidate's; None when that is not said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What an author answered, word for word."""

    text: str
    """The answer."""
    usage: Usage
    """What it cost."""
    finish_reason: str = "stop"
    """As the server says it: ``stop``, ``length``, ``content_filter``; ``incomplete`` for a broken stream."""
    reasoning: str = ""
    """What a reasoning model thought before it answered, where the server shows it; never parsed."""
    notes: tuple[str, ...] = ()
    """What had to be done to get it, a sentence each: requests made again, settings the server refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One exchange with an author inside a round. Every one is kept."""

    purpose: str
    """As the prompt's, or ``edit`` for a person's own source."""
    prompt: Prompt
    """What was asked."""
    reply: Reply | None
    """What came back; None when the author failed."""
    problem: str = ""
    """Why the reply could not be used, or the author's error; empty when it could."""
    candidate: Candidate | None = None
    """The candidate it gave."""
    evaluation: Evaluation | None = None
    """What became of that candidate."""
    prediction: Prediction | None = None
    """What its author expects of it; None when it predicted nothing."""


class Relation(StrEnum):
    """How a candidate compares with the best before it."""

    FASTER = "faster"
    SLOWER = "slower"
    CANNOT_TELL = "cannot tell"
    LESS_WORK = "less work"
    SAME_WORK = "same work"
    MORE_WORK = "more work"
    FIRST = "first"
    """There is nothing to compare with."""

    @property
    def is_better(self) -> bool:
        """Whether a candidate of that relation becomes the best one when it is approved."""
        return self in {Relation.FIRST, Relation.FASTER, Relation.LESS_WORK}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Candidate against the best before it: by times on a GPU, else by counts, never called faster."""

    relation: Relation
    """The judgement."""
    reason: str
    """The figures it rests on, in a sentence."""
    against: str = ""
    """Digest of that best; empty for FIRST."""


class Action(StrEnum):
    """What a person or a policy decided."""

    APPROVE = "approve"
    REJECT = "reject"
    STEER = "steer"
    EDIT = "edit"
    BRANCH = "branch"
    OVERRULE = "overrule"
    """Build on it although its verdict says not to; the reason is recorded."""
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One decision at a gate."""

    gate: str
    """``prompt`` or ``revision``."""
    action: Action
    """What was decided."""
    by: str
    """``policy:auto`` or ``person:NAME``."""
    reason: str = ""
    """Words given with it: why rejected, or the steering text."""
    edited: str = ""
    """For EDIT: the new prompt text or the new source. For BRANCH: the revision to go on from."""
    seconds: float = 0.0
    """How long it took to decide; a budget may count a person's."""
    parents: tuple[str, ...] = ()
    """For EDIT: digests of the revisions that the new source merges; empty for one written by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One finished round. Never changed afterwards."""

    number: int
    """From 0."""
    stage: Stage
    """Stage it ran in."""
    strategy: Strategy | None
    """The optimisation of this round; None while the first passing kernel is sought."""
    attempts: tuple[Attempt, ...]
    """Every exchange, in order; the last one's candidate is the round's."""
    comparison: Comparison | None
    """Against the best before it; None when nothing passed."""
    decisions: tuple[Decision, ...]
    """At the gates, in order."""
    started_at: str
    """UTC, ISO 8601."""
    seconds: float
    """Wall time, waiting for a person included."""
    note: str = ""
    """Why a round ended without a candidate; empty otherwise."""
    stage_because: str = ""
    """Why it ran in this stage: what ended the stage before, in a sentence; empty where nothing did."""
    gpu_s: float = 0.0
    """Seconds in which its evaluations held a GPU; 0 on the simulator."""
    parent_profile: Profile | None = None
    """Counters of the parent, taken for this round because its stage asks for them; None where the parent
    had them already, or none could be had."""

    @property
    def candidate(self) -> Candidate | None:
        """The candidate the round ended with."""
        return next((a.candidate for a in reversed(self.attempts) if a.candidate is not None), None)

    @property
    def evaluation(self) -> Evaluation | None:
        """What became of it."""
        return next((a.evaluation for a in reversed(self.attempts) if a.candidate), None)

    @property
    def usage(self) -> Usage:
        """What its replies cost together."""
        return sum((a.reply.usage for a in self.attempts if a.reply), Usage())

    @property
    def approved(self) -> bool:
        """Whether the candidate may be built upon: it passed and was approved, or a person overruled."""
        decision = next((d for d in reversed(self.decisions) if d.gate == "revision"), None)
        evaluation = self.evaluation
        if decision is None or evaluation is None:
            return False
        if decision.action is Action.OVERRULE:
            return evaluation.may_be_overruled and bool(decision.reason.strip())
        return decision.action is Action.APPROVE and evaluation.passed
