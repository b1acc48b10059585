import pytest

from gateway.demo.scripted_model.dialogue import PlannedCall, Reply
from gateway.demo.scripted_model.limits import LimitedReply, limit_reply

CALL = PlannedCall("call_1", "look", {})


@pytest.mark.parametrize(
    ("calls", "stops", "most", "expected"),
    [
        ((), (), None, LimitedReply(("One", " two", " three"), ("Hm.",), (), "stop")),
        ((), (" three", "", " two"), None, LimitedReply(("One",), ("Hm.",), (), "stop")),
        ((CALL,), (), 3, LimitedReply(("One", " two", " three"), ("Hm.",), (CALL,), "calls")),
        ((CALL,), (), 2, LimitedReply(("One", " two"), ("Hm.",), (), "length")),
        ((), (" two",), 1, LimitedReply(("One",), ("Hm.",), (), "stop")),
        ((), (), 0, LimitedReply((), ("Hm.",), (), "length")),
    ],
)
def test_a_reply_ends_at_its_first_limit(
    calls: tuple[PlannedCall, ...], stops: tuple[str, ...], most: int | None, expected: LimitedReply
) -> None:
    assert limit_reply(Reply("One two three", calls, "Hm."), "One two three", stops, most) == expected
