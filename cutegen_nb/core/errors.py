"""What cutegen_nb could not do, as exceptions.

What became of a *candidate* is never an exception: it is an
:class:`~cutegen_nb.core.evaluation.Outcome`.  These are about us and our surroundings.

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
    │   └── DeviceUnavailable
    └── StoreError            the session could not be read or written

Every message says what happened, the value seen, and the next step.
"""

from __future__ import annotations


class CutegenError(Exception):
    """Base of everything this package raises on purpose."""


class UsageError(CutegenError):
    """The request cannot be carried out as it was made."""


class ProblemError(UsageError):
    """The problem's source cannot be used: it does not parse, lacks a part, or its reference raises."""


class ConfigurationError(CutegenError):
    """A setting, a key or an installed package is missing or unusable."""


class AuthorError(CutegenError):
    """The author gave no reply."""


class RateLimited(AuthorError):
    """The model's server refused for now."""


class Unreachable(AuthorError):
    """The model's server could not be reached."""


class Refused(AuthorError):
    """The model's server will not answer as we ask: its key, model, address or account must change."""


class Declined(AuthorError):
    """The author cannot write a kernel for this problem, or has nothing more to try."""


class EvaluatorError(CutegenError):
    """No evaluation could be had, for a reason that is not the candidate's."""


class WorkerDied(EvaluatorError):
    """The process that holds torch and the DSL ended."""


class DeviceUnavailable(EvaluatorError):
    """The asked-for device is not there."""


class StoreError(CutegenError):
    """The session's database could not be read or written."""
