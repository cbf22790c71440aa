"""Campaigns: many problems, one author, one set of settings. A session holds the rounds of each problem."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ProblemState(StrEnum):
    """State of a problem in a campaign."""

    FINISHED = "finished"
    """Its session ended by itself, with a correct kernel or without."""
    OVER_BUDGET = "budget spent"
    """Its session ended by a budget of the problem; a larger budget takes it up again."""
    DECLINED = "declined"
    """The author can write no kernel for it."""
    UNUSABLE = "unusable"
    """The problem file cannot be used."""
    FAILED = "failed"
    """Author, evaluator or this package failed on it before any kernel was correct."""
    UNFINISHED = "unfinished"
    """Its session has begun and has not ended: it was interrupted."""
    WAITING = "waiting"
    """Not begun."""

    @property
    def is_regular(self) -> bool:
        """True if its session ran as it should: until a rule or a budget ended it."""
        return self in {ProblemState.FINISHED, ProblemState.OVER_BUDGET}

    @property
    def is_over(self) -> bool:
        """True if the problem counts in the statistics: it was tried to its end, whatever came of it."""
        return self not in {ProblemState.UNFINISHED, ProblemState.WAITING}


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignEntry:
    """Outcome of one problem, recorded when its session has ended."""

    name: str
    """Name of the problem in the campaign, unique in it."""
    file: str
    """Path of the problem file, as it was given."""
    digest: str
    """SHA-256 of the file's text; empty for a file that could not be read."""
    state: ProblemState
    """State of the problem."""
    sentence: str = ""
    """Reason for the state, in a sentence."""
    session: str = ""
    """Name of its session in the campaign's store; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRecord:
    """Settings and outcomes of a campaign, kept in a file beside its sessions."""

    name: str
    """Name of the campaign."""
    created_at: str
    """Start of the campaign: UTC, ISO 8601."""
    settings: dict[str, str]
    """Settings that make results comparable, by option: author, device, baselines …"""
    budgets: dict[str, str]
    """Limits of each problem and of the whole, by option; they may change when the campaign is resumed."""
    environment: dict[str, str]
    """Versions at the start: python, torch, nvidia-cutlass-dsl, cutegen-nb."""
    entries: tuple[CampaignEntry, ...] = ()
    """Outcomes of the problems that are over, in the order in which they ended."""
    format: int = 1
    """Version of this format."""

    def entry_of(self, name: str) -> CampaignEntry | None:
        """Return the outcome of a problem; None if it is not over."""
        return next((item for item in reversed(self.entries) if item.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignBudget:
    """Limits over all problems of a campaign. None means no limit."""

    tokens: int | None = None
    """Tokens of prompts and replies together."""
    dollars: float | None = None
    """US dollars at the author's prices; requests without a known price count nothing."""
    wall_s: float | None = None
    """Wall time of the rounds in seconds."""
    gpu_s: float | None = None
    """Seconds that evaluations held a GPU."""
