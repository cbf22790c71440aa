"""Exception hierarchy of cutegen_nb.

The fate of a *candidate* is never an exception: it is an :class:`~cutegen_nb.core.evaluation.Outcome`.
Exceptions concern this package and its environment.

::

    CutegenError
    ├── UsageError            the person asked for something that cannot be done as asked
    │   └── ProblemError      the problem file cannot be used
    ├── ConfigurationError    a setting, a key or an installed package is missing or wrong
    ├── AuthorError           no reply could be had
    │   ├── RateLimited
    │   ├── Unreachable
    │   ├── Refused           the server will not serve us: key, model or account
    │   └── Declined          the author says it cannot write this kernel
    ├── EvaluatorError        no evaluation could be had
    │   ├── WorkerDied
    │   ├── EvaluationLost    one evaluation was lost with processes that it shared; it can be made again
    │   │   └── EvaluatorLost     so was the evaluator
    │   └── DeviceUnavailable
    └── StoreError            the session could not be read or written
        └── DamagedSession    one session cannot be read; the rest of the store can

Every message says what happened, the value seen, and the next step.
"""

from __future__ import annotations


class CutegenError(Exception):
    """Base of every exception that this package raises on purpose."""


class UsageError(CutegenError):
    """The request cannot be carried out as made."""


class ProblemError(UsageError):
    """The problem's source cannot be used: it does not parse, lacks a part, or its reference raises."""


class ConfigurationError(CutegenError):
    """A setting, a key or an installed package is missing or unusable."""


class AuthorError(CutegenError):
    """The author gave no reply."""


class RateLimited(AuthorError):
    """The model's server refused for the moment because of a rate limit (HTTP 429)."""


class Unreachable(AuthorError):
    """The model's server could not be reached."""


class Refused(AuthorError):
    """The model's server refuses this request for good: key, model, address or account must change."""


class Declined(AuthorError):
    """The author cannot write a kernel for this problem, or has nothing more to try."""


class EvaluatorError(CutegenError):
    """No evaluation could be made, for a reason outside the candidate."""


class WorkerDied(EvaluatorError):
    """The worker process, which holds torch and the DSL, ended."""


class EvaluationLost(EvaluatorError):
    """The evaluation ended with processes that it shared with others; no candidate can be blamed for it."""


class EvaluatorLost(EvaluationLost):
    """The process or the machine of the evaluator ended, and the evaluation with it."""


class DeviceUnavailable(EvaluatorError):
    """The requested device is not available."""


class StoreError(CutegenError):
    """The session's database could not be read or written."""


class DamagedSession(StoreError):
    """One session cannot be read; the rest of the store can."""
