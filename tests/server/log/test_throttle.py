"""Tests log lines that are limited to one per second."""

from gateway.server.log.throttle import LogThrottle


def test_one_line_a_second_tells_of_all() -> None:
    seldom = LogThrottle()
    assert [seldom.count(now) for now in (5.0, 5.1, 5.9, 6.0, 6.1, 9.0, 9.5)] == [1, 0, 0, 3, 0, 2, 0]
