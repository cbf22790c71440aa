from __future__ import annotations

import asyncio

import pytest

from cutegen_nb.authors.failures import FailureKind, RequestFailure
from cutegen_nb.authors.retry import LONGEST_WAIT_S, RateLimiter, RetryPolicy
from cutegen_nb.authors.server_profile import RequestLimits


def setback(kind: FailureKind, retry_after_s: float | None = None) -> RequestFailure:
    return RequestFailure(kind=kind, happened="it failed", cure="wait", retry_after_s=retry_after_s)


def waits(patience: RetryPolicy, kind: FailureKind, number: int) -> list[float | None]:
    return [patience.wait_s(setback(kind)) for _ in range(number)]


def test_waits_double_within_their_random_part_until_the_retries_are_used_up():
    found = waits(RetryPolicy(RequestLimits(retries=4)), FailureKind.BUSY, 5)
    for wait, longest in zip(found, (0.5, 1.0, 2.0, 4.0), strict=False):
        assert longest / 2 <= wait <= longest
    assert found[4] is None


def test_no_wait_is_longer_than_half_a_minute_of_our_own():
    assert all(wait <= 30 for wait in waits(RetryPolicy(RequestLimits(retries=20)), FailureKind.BUSY, 20))


def test_two_clients_do_not_come_back_together():
    assert len({RetryPolicy(RequestLimits()).wait_s(setback(FailureKind.BUSY)) for _ in range(20)}) > 10


@pytest.mark.parametrize(
    ("kind", "often"),
    [
        (FailureKind.NO_CONNECTION, 2),
        (FailureKind.SLOW, 1),
        (FailureKind.BROKEN, 1),
        (FailureKind.GARBLED, 1),
        (FailureKind.REFUSED, 0),
        (FailureKind.NO_MODEL, 0),
        (FailureKind.BAD_REQUEST, 0),
    ],
)
def test_what_seldom_helps_is_seldom_tried(kind, often):
    found = waits(RetryPolicy(RequestLimits(retries=10)), kind, often + 1)
    assert None not in found[:often]
    assert found[often] is None


def test_what_the_server_asks_for_is_waited_and_no_less():
    patience = RetryPolicy(RequestLimits())
    assert 7 <= patience.wait_s(setback(FailureKind.BUSY, 7.0)) <= 7.7
    assert patience.wait_s(setback(FailureKind.BUSY, LONGEST_WAIT_S + 1)) is None


def test_the_requests_of_a_minute_are_no_more_than_the_limit_says():
    now = 0.0
    begun: list[float] = []
    told: list[str] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def play() -> None:
        nonlocal now
        turns = RateLimiter(RequestLimits(requests_per_minute=3), now=lambda: now, sleep=sleep)
        for _ in range(10):
            async with turns.turn(told.append):
                begun.append(now)
                now += 1.0

    asyncio.run(play())
    for first, fourth in zip(begun, begun[3:], strict=False):
        assert fourth - first >= 60
    assert begun[-1] < 200
    assert told[0] == "3 requests were made in a minute: waiting 57 s"
