"""Defines scenarios in which the backend rolls back what it sent."""

from typing import Final

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.demo.scenario import Expect, WarpScenario, failure
from adapters.warp.demo.scenarios.calls import CAT, PARIS
from adapters.warp.demo.steps import BEGIN, COMMIT, PRELUDE, ROLLBACK, call, finish, more_text, text_message, text_start

_HEAD: Final = (*PRELUDE, BEGIN)
_WRONG: Final = (text_start("This is "), more_text("wrong."))
_UNAVAILABLE: Final = pb.StreamFinished(llm_unavailable=pb.StreamFinished.LLMUnavailable())

TRANSACTIONS: Final[dict[str, WarpScenario]] = {
    "rollback_retry": WarpScenario(
        about="text and a call that are rolled back, then the right text (with a backend entry that buffers)",
        turns=(
            (*_HEAD, *_WRONG, call("Execute", CAT), ROLLBACK, BEGIN, text_message("This is right."), COMMIT, finish()),
        ),
        expect=Expect(text="This is right."),
    ),
    "rollback_to_call": WarpScenario(
        about="a call that is rolled back, then another",
        turns=(
            (*_HEAD, call("Execute", CAT), ROLLBACK, BEGIN, call("get_weather", PARIS, position=2), COMMIT, finish()),
        ),
        expect=Expect(calls=(("get_weather", '{"city":"Paris","days":3}'),), finish="tool_calls"),
    ),
    "rollback_end": WarpScenario(
        about="text that is rolled back, without a second attempt",
        turns=((*_HEAD, text_message("Never mind."), ROLLBACK, finish(_UNAVAILABLE)),),
        expect=failure("503_bare", 503, "upstream_overloaded"),
    ),
    "committed_twice": WarpScenario(
        about="two committed transactions",
        turns=((*_HEAD, text_message("One."), COMMIT, BEGIN, text_message(" Two."), COMMIT, finish()),),
        expect=Expect(text="One. Two."),
    ),
    "never_committed": WarpScenario(
        about="finished inside an open transaction",
        turns=((*_HEAD, text_message("Kept."), finish()),),
        expect=Expect(text="Kept."),
    ),
}
