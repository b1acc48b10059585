import pytest

from gateway.core.errors import BackendProtocolError, BackendRejected
from gateway.testing.events import fold
from tests.adapters.warp.backend.script import (
    COMMIT,
    DONE,
    PRELUDE,
    acts,
    add,
    decode,
    finished,
    more,
    output,
    rules,
)

MALFORMED = [
    b"data:%%%\n\n",
    b"data:EhgKFhoUCgJ0MRIOCgJtMRoECgJI\n\n",
    b"data:_w==\n\n",
    b"data:EgQ\n\n",
    b"data:{}\n\n",
]


@pytest.mark.parametrize("broken", MALFORMED)
def test_one_malformed_event_fails_the_stream(broken: bytes) -> None:
    with pytest.raises(BackendProtocolError) as caught:
        decode(PRELUDE + acts(add(output("a"))) + broken + acts(more("b")) + DONE)
    assert caught.value.code == "upstream_invalid_event"
    assert [notice.rule for notice in caught.value.notices] == ["MALFORMED_EVENT"]


@pytest.mark.parametrize("broken", MALFORMED)
def test_a_malformed_event_is_skipped_with_a_warning_when_that_is_wanted(broken: bytes) -> None:
    events = decode(PRELUDE + acts(add(output("a"))) + broken + acts(more("b")) + DONE, strict_frames=False)
    assert (fold(events).text, rules(events)) == ("ab", ["MALFORMED_EVENT"])


def test_a_failing_feed_tells_what_it_had_noticed() -> None:
    with pytest.raises(BackendRejected) as caught:
        decode(PRELUDE + acts(COMMIT) + finished(quota_limit={}))
    assert [notice.rule for notice in caught.value.notices] == ["TRANSACTION_UNBALANCED"]
