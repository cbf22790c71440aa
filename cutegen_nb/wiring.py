"""Construction of author, evaluator, store and approver from settings."""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Protocol

from cutegen_nb import __version__
from cutegen_nb.analysis.estimate.targets import EstimateTarget, find_target
from cutegen_nb.authors.manual import ManualAuthor
from cutegen_nb.authors.offline.author import OfflineAuthor
from cutegen_nb.authors.offline.examples import worked_example
from cutegen_nb.authors.openai_compatible import OpenAICompatibleAuthor
from cutegen_nb.authors.profile_file import config_path, find_profile
from cutegen_nb.authors.server_profile import DEFAULT_URL, ServerProfile
from cutegen_nb.cluster.ray_members import RayMembers
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.ports import Approver, Author, Evaluator, Guide, Progress
from cutegen_nb.core.search.knowledge import learn_nothing, no_knowledge
from cutegen_nb.core.session import Session
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.evaluator.evaluator_pool import EvaluatorPool
from cutegen_nb.evaluator.host_members import HostMembers
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover, ConsoleApprover, EditText, ReadLine
from cutegen_nb.prompting.guide import CuTeGuide
from cutegen_nb.prompting.library import PromptLibrary, shipped_library
from cutegen_nb.simulator.state.architectures import ARCHITECTURES, architecture_for
from cutegen_nb.store.history import StrategyHistory
from cutegen_nb.store.knowledge_base import KnowledgeBase, knowledge_folder
from cutegen_nb.store.sqlite import SqliteStore

DEFAULT_FOLDER = Path(".cutegen")
"""Folder of the sessions, in the working directory, unless ``--store`` names another."""
CAMPAIGNS_FOLDER = DEFAULT_FOLDER / "campaigns"
"""Folder of the campaigns, each with a folder of its own, unless ``--store`` names another."""
AUTHORS = ("offline", "openai", "manual")
"""Values of ``--author``."""
DEVICES = ("auto", "cuda", "simulator")
"""Values of ``--device``."""
BASELINES = ("eager", "torch.compile")
"""Values of ``--baseline``: forms of the reference whose times a kernel is compared with."""
POLICIES = ("auto", "ask")
"""Values of ``--policy``: decide at gates by rule, or ask a person."""
_REPAIRS = 2
"""Repairs of a failed candidate in one round, at most."""


class Person(Protocol):
    """Interface to a person: a terminal, or the panel of a notebook."""

    @property
    def progress(self) -> Progress:
        """Callback for the progress text."""
        ...

    @property
    def say(self) -> Callable[[str], None]:
        """Callback that shows a text."""
        ...

    @property
    def read_line(self) -> ReadLine:
        """Function that asks for a line."""
        ...

    @property
    def edit_text(self) -> EditText:
        """Function that opens an editor on a text."""
        ...

    @property
    def paste(self) -> Callable[[], Awaitable[str | None]] | None:
        """Function that waits for a pasted text; None where nobody could paste one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a command or a magic, from its options and the environment."""

    author: str = "offline"
    """Author, of `AUTHORS`."""
    device: str = "auto"
    """Device on which kernels run, of `DEVICES`."""
    policy: str = "auto"
    """Policy at gates, of `POLICIES`."""
    baselines: tuple[str, ...] = BASELINES
    """Baselines of GPU times, of `BASELINES`."""
    screening: bool = True
    """True if a candidate's source is screened before it runs."""
    folder: Path = DEFAULT_FOLDER
    """Folder of sessions, prompts and reports."""
    server: ServerProfile = field(default_factory=lambda: ServerProfile(name="openai", model=""))
    """Model and server of the author ``openai``, from the config file or from options."""
    key: str = field(default="", repr=False)
    """API key, from the environment only; never stored, logged or shown."""
    prompts: Path | None = None
    """Folder of a person's own templates; None for the shipped ones alone."""
    person: str = "unknown"
    """Login of the person who decides, for the record."""
    target: str = ""
    """GPU that times are estimated for without one; empty for the session's own, else the default."""
    history: bool = True
    """True if sessions use the knowledge base and add to it."""
    workers: int = 1
    """Evaluations that run at once, at most."""
    ray: str = ""
    """Address of the Ray cluster that evaluates: ``auto``, ``local`` or host:port; empty for this host."""

    session_architecture: str = ""
    """Architecture that a stored session's kernels were compiled for; empty without one."""

    @property
    def estimate_target(self) -> EstimateTarget | None:
        """GPU that was named for estimates; None without one. Raises UsageError for an unknown GPU."""
        return find_target(self.target) if self.target else None

    @property
    def architecture(self) -> str | None:
        """Architecture to simulate: a session's, else a named target's; None for the default."""
        if self.session_architecture in ARCHITECTURES:
            return self.session_architecture
        return architecture_for(find_target(self.target).sheet.architecture) if self.target else None


def settings_for(session: Session, settings: Settings) -> Settings:
    """Return settings with which the kernels of a stored session are compiled as they were."""
    return replace(settings, session_architecture=session.device.architecture)


def settings_from_environment(  # noqa: PLR0913 - one argument an option of the command line
    *,
    author: str = "offline",
    device: str = "auto",
    policy: str = "auto",
    baselines: tuple[str, ...] = (),
    folder: Path | None = None,
    model: str = "",
    base_url: str = "",
    profile: str = "",
    prompts: Path | None = None,
    target: str = "",
    history: bool = True,
    workers: int = 1,
    ray: str = "",
) -> Settings:
    """Return settings from options, with CUTEGEN_MODEL, OPENAI_BASE_URL and the key's variable as defaults.

    With a `profile` the server comes from the config file; `model` and `base_url` override parts of it.
    Raises ConfigurationError for an unknown profile, UsageError for a profile with the author ``manual`` and
    for a target without a data sheet.
    """
    if target:
        find_target(target)
    server = _server(profile, model, base_url)
    if profile and author not in {"offline", "openai"}:
        message = f"--profile {profile} is for a model, and --author {author} is none: give one of the two"
        raise UsageError(message)
    return Settings(
        author="openai" if profile else author,
        device=device,
        policy=policy,
        baselines=baselines or BASELINES,
        folder=folder or DEFAULT_FOLDER,
        server=server,
        key=os.environ.get(server.key_variable, "") if server.key_variable else "",
        prompts=prompts,
        person=_login(),
        target=target,
        history=history,
        workers=workers,
        ray=ray,
    )


def _server(profile: str, model: str, base_url: str) -> ServerProfile:
    if profile:
        found = find_profile(profile, config_path())
        # A profile's key is for its server alone.
        elsewhere = bool(base_url) and base_url != found.base_url
        return replace(
            found,
            model=model or found.model,
            base_url=base_url or found.base_url,
            key_variable="" if elsewhere else found.key_variable,
        )
    return ServerProfile(
        name="openai",
        model=model or os.environ.get("CUTEGEN_MODEL", ""),
        base_url=base_url or os.environ.get("OPENAI_BASE_URL", "") or DEFAULT_URL,
    )


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A container may run under a user id that has no name.
        return str(os.getuid())


def versions() -> dict[str, str]:
    """Return the installed versions of ``python``, ``cutegen-nb``, ``torch`` and ``nvidia-cutlass-dsl``.

    A package that is not installed is left out.
    """
    found = {"python": platform.python_version(), "cutegen-nb": __version__}
    for package in ("torch", "nvidia-cutlass-dsl"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


class SystemClock:
    """Clock of the machine."""

    def now(self) -> str:
        """Return the UTC time in ISO 8601, in whole seconds."""
        return datetime.now(UTC).isoformat(timespec="seconds")

    def monotonic(self) -> float:
        """Return seconds of a monotonic clock."""
        return time.monotonic()


def library_of(settings: Settings) -> PromptLibrary:
    """Return the prompt templates; a person's own override shipped ones. Raises ConfigurationError."""
    return PromptLibrary(own=settings.prompts) if settings.prompts else shipped_library()


def make_guide(settings: Settings) -> Guide:
    """Make the guide that adds chapters on the CuTe DSL and a worked example to a request.

    Raises ConfigurationError for a chapter with a wrong tag.
    """
    return CuTeGuide(library_of(settings).chapters(), worked_example)


def make_author(settings: Settings, person: Person) -> Author:
    """Make the author of the settings.

    Raises ConfigurationError when the author lacks a setting, UsageError for an unknown author.
    """
    if settings.author == "offline":
        return OfflineAuthor()
    if settings.author == "openai":
        return OpenAICompatibleAuthor(settings.server, key=settings.key, library=library_of(settings))
    if settings.author == "manual":
        return ManualAuthor(
            folder=settings.folder / "prompts",
            library=library_of(settings),
            say=person.say,
            paste=person.paste,
        )
    message = f"no author {settings.author!r}: there is {', '.join(AUTHORS)}"
    raise UsageError(message)


def max_repairs(settings: Settings) -> int:
    """Return the repairs in a round, at most; 0 for ``offline``, which would write the same kernel again."""
    return 0 if settings.author == "offline" else _REPAIRS


def slots_at_once(settings: Settings, population: int) -> int:
    """Return the slots of an epoch that run side by side.

    A model is asked for all of them at once. A person answers one request after the other, and ``offline``
    writes at once, so that its slots wait for evaluations only.
    """
    return {"manual": 1, "openai": max(settings.workers, population)}.get(settings.author, settings.workers)


def no_price_reason(settings: Settings) -> str:
    """Return the reason that a budget in dollars has no effect; empty where requests have a price."""
    if settings.author != "openai":
        return f"a budget in dollars counts nothing: the author {settings.author} has no price"
    if settings.server.price is not None:
        return ""
    name = settings.server.name
    return (
        f"a budget in dollars counts nothing: no price of {settings.server.model} is known: "
        f"write [profile.{name}.price] with input and output into {config_path()}, or limit --tokens"
    )


def make_evaluator(settings: Settings, say: Callable[[str], None] = lambda _: None) -> Evaluator:
    """Make the evaluator: one, a pool of several on this host, or a pool on a Ray cluster.

    `say` shows a sentence on a pool that is smaller than was asked for. A missing device or cluster raises
    its error at the first use, not here.
    """
    device, baselines, screening = settings.device, settings.baselines, settings.screening
    if settings.ray:
        return EvaluatorPool(
            RayMembers(
                address=settings.ray,
                workers=settings.workers,
                device=device,
                architecture=settings.architecture,
                baselines=baselines,
                screening=screening,
                say=say,
            )
        )
    if settings.workers > 1:
        return EvaluatorPool(
            HostMembers(
                workers=settings.workers,
                device=device,
                architecture=settings.architecture,
                baselines=baselines,
                screening=screening,
                say=say,
            )
        )
    return KernelEvaluator(
        device=device, architecture=settings.architecture, baselines=baselines, screening=screening
    )


def make_approver(settings: Settings, person: Person) -> Approver:
    """Make the approver: a rule, or the person at a terminal. Raises UsageError for an unknown policy."""
    if settings.policy == "auto":
        return AutoApprover()
    if settings.policy == "ask":
        return ConsoleApprover(
            person=settings.person, say=person.say, read_line=person.read_line, edit_text=person.edit_text
        )
    message = f"no policy {settings.policy!r}: there is {', '.join(POLICIES)}"
    raise UsageError(message)


def make_effects(settings: Settings, person: Person, evaluator: Evaluator) -> Effects:
    """Make the effects of a round: author, evaluator, approver, clock, templates, guide, knowledge base."""
    history = make_history(settings, person.say)
    return Effects(
        author=make_author(settings, person),
        evaluator=evaluator,
        approver=make_approver(settings, person),
        clock=SystemClock(),
        library=library_of(settings),
        progress=person.progress,
        guide=make_guide(settings),
        knowledge=history.recall if history else no_knowledge,
        learn=history.learn if history else learn_nothing,
        environment=versions(),
        server=settings.server.address if settings.author == "openai" else "",
        target=settings.estimate_target,
    )


def make_history(settings: Settings, say: Callable[[str], None]) -> StrategyHistory | None:
    """Make the history of earlier sessions; None where the settings leave it unused."""
    return StrategyHistory(KnowledgeBase(knowledge_folder()), say) if settings.history else None


def open_store(settings: Settings, *, writable: bool = True) -> SqliteStore:
    """Open the store of the settings' folder. Raises StoreError."""
    return SqliteStore(settings.folder, writable=writable)
