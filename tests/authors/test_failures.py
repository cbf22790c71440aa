"""Failed requests as values: which error they become, and how long a server asks to wait."""

import email.utils
import time

import pytest

from cutegen_nb.authors.failures import FailureKind, RequestFailure, retry_after_s
from cutegen_nb.core.errors import AuthorError, RateLimited, Refused, Unreachable


@pytest.mark.parametrize(
    ("kind", "limited", "error"),
    [
        (FailureKind.REFUSED, False, Refused),
        (FailureKind.NO_MODEL, False, Refused),
        (FailureKind.BUSY, True, RateLimited),
        (FailureKind.BUSY, False, Unreachable),
        (FailureKind.NO_CONNECTION, False, Unreachable),
        (FailureKind.GARBLED, False, AuthorError),
    ],
)
def test_a_failure_is_an_error_of_its_kind_with_the_next_step(kind, limited, error):
    failure = RequestFailure(kind=kind, happened="it did not answer", cure="start it", limited=limited)
    assert type(failure.error()) is error
    assert str(failure.error(3)) == "it did not answer 3 times: start it"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "later"}, None),
        ({}, None),
    ],
)
def test_the_wait_is_read_in_either_form(headers, seconds):
    assert retry_after_s(headers) == seconds


def test_a_date_is_a_wait_from_now():
    soon = email.utils.formatdate(time.time() + 60, usegmt=True)
    assert 50 < retry_after_s({"retry-after": soon}) <= 60
    assert retry_after_s({"retry-after": email.utils.formatdate(0, usegmt=True)}) == 0.0
