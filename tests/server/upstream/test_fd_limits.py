"""Tests the limit of open files, and its reserved part."""

import errno
import resource
from collections.abc import Callable
from typing import TypeAlias

import pytest

from gateway.core.errors import BackendUnavailable, GatewayError
from gateway.server.upstream.fd_limits import (
    MOST,
    check_lack,
    default_connections,
    last_for_backends,
    last_for_clients,
    most_descriptors,
    raise_limit,
)

Limit: TypeAlias = "Callable[[int, int], list[tuple[int, int]]]"
ENDLESS = resource.RLIM_INFINITY


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Limit:
    """Pretend that these are the soft and the hard limit; the list is what was set."""

    def pretend(soft: int, hard: int) -> list[tuple[int, int]]:
        wanted: list[tuple[int, int]] = []
        monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
        monkeypatch.setattr(resource, "setrlimit", lambda _, limits: wanted.append(limits))
        return wanted

    return pretend


@pytest.mark.parametrize(
    ("soft", "hard", "wanted"),
    [
        (1024, 65_536, [(65_536, 65_536)]),
        (1024, ENDLESS, [(MOST, ENDLESS)]),
        (1024, 2 * MOST, [(MOST, 2 * MOST)]),
        (65_536, 65_536, []),
        (2 * MOST, ENDLESS, []),
        (ENDLESS, ENDLESS, []),
    ],
)
def test_the_limit_is_raised_as_far_as_it_goes(
    limit: Limit, soft: int, hard: int, wanted: list[tuple[int, int]]
) -> None:
    found = limit(soft, hard)
    raise_limit()
    assert found == wanted


@pytest.mark.parametrize("error", [ValueError, OSError])
def test_a_limit_that_cannot_be_raised_stays(
    limit: Limit, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def refuse(*_: object) -> None:
        raise error

    limit(1024, 2048)
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_limit()
    assert most_descriptors() == 1024


@pytest.mark.parametrize(
    ("soft", "most", "connections", "client", "backend"),
    [
        (20_000, 20_000, 9968, 19_936, 19_968),
        (1024, 1024, 480, 960, 992),
        (128, 128, 32, 96, 112),
        (16, 16, 16, 12, 14),
        (ENDLESS, MOST, 499_968, 999_936, 999_968),
    ],
)
def test_some_are_kept_back(limit: Limit, soft: int, most: int, connections: int, client: int, backend: int) -> None:
    limit(soft, ENDLESS)
    assert (most_descriptors(), default_connections()) == (most, connections)
    assert (last_for_clients(), last_for_backends()) == (client, backend)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_backend_is_not_blamed_for_our_lack(number: int) -> None:
    error = BackendUnavailable("not reached")
    error.__cause__ = OSError(number, "too many")
    with pytest.raises(GatewayError) as raised:
        check_lack(error)
    assert (raised.value.status, raised.value.code, raised.value.headers) == (503, "overloaded", {"retry-after": "1"})


@pytest.mark.parametrize("cause", [None, ValueError(), OSError(errno.ECONNREFUSED, "refused")])
def test_what_else_fails_is_the_backends_fault(cause: Exception | None) -> None:
    error = BackendUnavailable("not reached")
    error.__cause__ = cause
    check_lack(error)
