"""The one place where settings become a concrete author, evaluator, store and approver."""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
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
from cutegen_nb.authors.manual import ManualAuthor
from cutegen_nb.authors.offline.author import OfflineAuthor
from cutegen_nb.authors.openai_compatible import OpenAICompatibleAuthor
from cutegen_nb.authors.profile_file import config_path, find_profile
from cutegen_nb.authors.server_profile import DEFAULT_URL, ServerProfile
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.ports import Approver, Author, Evaluator, Guide, Progress
from cutegen_nb.gpu.evaluator import KernelEvaluator
from cutegen_nb.loop.gates import AutoApprover, ConsoleApprover, EditText, ReadLine
from cutegen_nb.loop.round import Effects
from cutegen_nb.prompting.guide import CuTeGuide
from cutegen_nb.prompting.library import PromptLibrary, shipped_library
from cutegen_nb.prompting.render import no_guide
from cutegen_nb.store.sqlite import SqliteStore

DEFAULT_FOLDER = Path(".cutegen")
AUTHORS = ("offline", "openai", "manual")
DEVICES = ("auto", "cuda", "simulator")
BASELINES = ("eager", "torch.compile")
POLICIES = ("auto", "ask")
_REPAIRS = 2


class Person(Protocol):
    """How a person is told and asked: a terminal, or a notebook's panel."""

    @property
    def progress(self) -> Progress:
        """Hears what is being done now."""
        ...

    @property
    def say(self) -> Callable[[str], None]:
        """Shows a text."""
        ...

    @property
    def read_line(self) -> ReadLine:
        """Asks for a line."""
        ...

    @property
    def edit_text(self) -> EditText:
        """Lets a text be edited."""
        ...

    @property
    def paste(self) -> Callable[[], Awaitable[str | None]] | None:
        """Takes a pasted text; None where nobody could paste one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a command or a magic was told, and the environment says."""

    author: str = "offline"
    """One of `AUTHORS`."""
    device: str = "auto"
    """One of `DEVICES`."""
    policy: str = "auto"
    """One of `POLICIES`."""
    baselines: tuple[str, ...] = BASELINES[:1]
    """What a GPU's times are compared with, of `BASELINES`."""
    screening: bool = True
    """Whether a candidate's source is read before it runs."""
    folder: Path = DEFAULT_FOLDER
    """Where sessions, prompts and reports are kept."""
    server: ServerProfile = field(default_factory=lambda: ServerProfile(name="openai", model=""))
    """The model and its server, for the author ``openai``: of the config file, or made of options."""
    key: str = field(default="", repr=False)
    """From the environment only; never stored, logged or shown."""
    prompts: Path | None = None
    """A person's own templates; None for the shipped ones alone."""
    person: str = "unknown"
    """Login of who decides, for the record."""


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
) -> Settings:
    """Settings with what was not given taken from CUTEGEN_MODEL, OPENAI_BASE_URL and the key's variable.

    With a `profile` the server is that of the config file, and `model` and `base_url` change parts of it.
    Raises ConfigurationError when there is none of that name, UsageError when another author is asked for.
    """
    server = _server(profile, model, base_url)
    if profile and author not in {"offline", "openai"}:
        message = f"--profile {profile} is for a model, and --author {author} is none: give one of the two"
        raise UsageError(message)
    return Settings(
        author="openai" if profile else author,
        device=device,
        policy=policy,
        baselines=baselines or BASELINES[:1],
        folder=folder or DEFAULT_FOLDER,
        server=server,
        key=os.environ.get(server.key_variable, "") if server.key_variable else "",
        prompts=prompts,
        person=_login(),
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
    """What is installed here, by name: ``python``, ``cutegen-nb``, ``torch``, ``nvidia-cutlass-dsl``."""
    found = {"python": platform.python_version(), "cutegen-nb": __version__}
    for package in ("torch", "nvidia-cutlass-dsl"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


class SystemClock:
    """The machine's time."""

    def now(self) -> str:
        """UTC, ISO 8601, whole seconds."""
        return datetime.now(UTC).isoformat(timespec="seconds")

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()


def library_of(settings: Settings) -> PromptLibrary:
    """The templates: shipped, and a person's own before them. Raises ConfigurationError."""
    return PromptLibrary(own=settings.prompts) if settings.prompts else shipped_library()


def make_guide(settings: Settings) -> Guide:
    """What adds chapters of the CuTe DSL guide to a request; none where bm25s is not installed."""
    if importlib.util.find_spec("bm25s") is None:
        return no_guide
    return CuTeGuide(library_of(settings).chapters())


def make_author(settings: Settings, person: Person) -> Author:
    """The author that was asked for. Raises ConfigurationError when it lacks a setting."""
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


def repairs_of(settings: Settings) -> int:
    """How often a failed candidate is repaired: the offline author would write the same kernel again."""
    return 0 if settings.author == "offline" else _REPAIRS


def uncounted_dollars(settings: Settings) -> str:
    """Why a budget in dollars counts nothing with this author; empty where every request has a price."""
    if settings.author != "openai":
        return f"a budget in dollars counts nothing: the author {settings.author} has no price"
    if settings.server.price is not None:
        return ""
    name = settings.server.name
    return (
        f"a budget in dollars counts nothing: no price of {settings.server.model} is known: "
        f"write [profile.{name}.price] with input and output into {config_path()}, or limit --tokens"
    )


def make_evaluator(settings: Settings) -> Evaluator:
    """Where candidates run. Raises DeviceUnavailable at its first use, not here."""
    return KernelEvaluator(device=settings.device, baselines=settings.baselines, screening=settings.screening)


def make_approver(settings: Settings, person: Person) -> Approver:
    """A policy, or the person."""
    if settings.policy == "auto":
        return AutoApprover()
    if settings.policy == "ask":
        return ConsoleApprover(
            person=settings.person, say=person.say, read_line=person.read_line, edit_text=person.edit_text
        )
    message = f"no policy {settings.policy!r}: there is {', '.join(POLICIES)}"
    raise UsageError(message)


def make_effects(settings: Settings, person: Person, evaluator: Evaluator) -> Effects:
    """Everything a round needs."""
    return Effects(
        author=make_author(settings, person),
        evaluator=evaluator,
        approver=make_approver(settings, person),
        clock=SystemClock(),
        library=library_of(settings),
        progress=person.progress,
        guide=make_guide(settings),
        environment=versions(),
    )


def open_store(settings: Settings, *, writable: bool = True) -> SqliteStore:
    """The store of the settings' folder. Raises StoreError."""
    return SqliteStore(settings.folder, writable=writable)
