"""A request that refers to stored responses is read as the whole history, or refused."""

from typing import Any, Final

import pytest

from adapters.openai_responses.client.stored_answer import CHAIN, record, response_id
from adapters.openai_responses.turn_items import Item
from gateway.core.conversation import Json, Text, ToolCall, ToolResult
from gateway.core.errors import InvalidRequest
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.policy import Policy
from gateway.core.provider_state import with_provider_state
from gateway.dialects.stored_chain import StoredInput
from gateway.history.prepare import prepare
from tests.adapters.openai_responses.client.requests import read
from tests.adapters.openai_responses.client.stored import DIALECT, Shelf
from tests.fuzz.counted import count_work, growth

CALLS: Final[tuple[Event, ...]] = (
    ResponseStart(),
    ToolCallStart(0, "call_a", "look"),
    ToolCallDelta(0, "{}"),
    ToolCallEnd(0),
    ToolCallStart(1, "call_b", "look"),
    ToolCallDelta(1, '{"x":1}'),
    ToolCallEnd(1),
    Finish("tool_calls"),
)
REASONING: Final[Json] = {"type": "reasoning", "id": "rs_theirs", "summary": []}
REASONED: Final[tuple[Event, ...]] = (
    ResponseStart(),
    PassthroughFields("event", {"type": "response.output_item.added", "output_index": 0, "item": REASONING}),
    ReasoningDelta("Hm."),
    ReasoningEnd(with_provider_state("openai", {"id": "rs_theirs", "encrypted_content": "gAAA"})),
    TextDelta("Hello."),
    Finish("stop"),
)
TOOLS: Final[list[dict[str, Any]]] = [{"type": "function", "name": "look"}]


def refused(shelf: Shelf, *args: Any, **fields: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        shelf.read(*args, **fields)
    return caught.value


def test_a_chain_is_read_as_the_whole_history() -> None:
    shelf = Shelf()
    first = shelf.answer("Hello", instructions="Be brief.", tools=TOOLS)
    second = shelf.answer("Weather?", CALLS, previous_response_id=first, tools=TOOLS)
    outputs = [{"type": "function_call_output", "call_id": name, "output": name} for name in ("call_a", "call_b")]
    conversation = shelf.read(outputs, previous_response_id=second, tools=TOOLS).conversation
    assert shelf.steps == 2, "the previous response, and then all others in one look-up"
    assert [turn.role for turn in conversation.turns] == ["user", "assistant", "user", "assistant", "tool", "tool"]
    assert [turn.index for turn in conversation.turns] == [-5, -4, -3, -2, 0, 1]
    calls = [block for turn in conversation.turns for block in turn.blocks if isinstance(block, ToolCall)]
    assert [(call.id, call.arguments, call.item) for call in calls] == [("call_a", "{}", -2), ("call_b", '{"x":1}', -1)]
    results = [block for turn in conversation.turns for block in turn.blocks if isinstance(block, ToolResult)]
    assert [(result.call_id, result.item) for result in results] == [("call_a", 0), ("call_b", 1)]
    notices = prepare(conversation, Policy(repair="strict")).notices
    assert {notice.rule for notice in notices} == {"TOOL_RESULT_EXTRACTED"}, "the history is complete"


def test_instructions_and_tools_are_those_of_the_request() -> None:
    shelf = Shelf()
    first = shelf.answer("Hello", instructions="Be brief.", tools=TOOLS)
    conversation = shelf.read("More", previous_response_id=first, instructions="Be long.").conversation
    assert [turn.text for turn in conversation.turns] == ["Be long.", "Hello", "Hello.", "More"]
    assert conversation.tools == ()


def test_two_requests_may_continue_one_response() -> None:
    shelf = Shelf()
    first = shelf.answer("Hello")
    forks = [shelf.answer(text, previous_response_id=first) for text in ("One", "Two")]
    for fork, text in zip(forks, ("One", "Two"), strict=True):
        turns = shelf.read("More", previous_response_id=fork).conversation.turns
        assert [turn.text for turn in turns] == ["Hello", "Hello.", text, "Hello.", "More"]


def test_a_fault_is_named_by_its_place_before_or_in_the_input() -> None:
    shelf = Shelf()
    first = shelf.answer([{"role": "owl", "content": "Hello"}])
    conversation = shelf.read([{"role": "cat", "content": "x"}], previous_response_id=first).conversation
    assert [(fault.rule, fault.index, fault.param) for fault in conversation.faults] == [
        ("ROLE_UNKNOWN", -2, "input[-2].role"),
        ("ROLE_UNKNOWN", 0, "input[0].role"),
    ]
    calling = shelf.answer("Look", CALLS)
    with pytest.raises(InvalidRequest) as caught:
        prepare(shelf.read("And?", previous_response_id=calling).conversation, Policy(repair="strict"))
    assert caught.value.param == "input[-2]"


def test_an_unknown_response_is_refused_in_the_words_of_the_api() -> None:
    error = refused(Shelf(), previous_response_id="resp_x")
    assert (error.status, error.code, error.param) == (400, "previous_response_not_found", "previous_response_id")
    assert error.message.startswith("Previous response with id 'resp_x' not found.")


@pytest.mark.parametrize("lost", [0, 1])
def test_a_missing_link_is_an_error_and_never_a_shorter_history(lost: int) -> None:
    shelf = Shelf()
    first = shelf.answer("Hello")
    second = shelf.answer("More", previous_response_id=first)
    del shelf.entries[CHAIN.items_entry((first, second)[lost])]
    error = refused(shelf, "And?", previous_response_id=second)
    assert (error.status, error.code) == (400, "previous_response_not_found")
    assert "is incomplete" in error.message


QUESTIONS: Final = 512


def chained(links: int) -> tuple[Shelf, str]:
    """`QUESTIONS` questions with their answers, in so many responses that repeat their tools. Return the last one."""
    shelf = Shelf()
    tools: list[Json] = [
        {"type": "function", "name": f"tool_{number}", "description": "d" * 200} for number in range(10)
    ]
    made = shelf.query("GET", "/v1/responses/{id}", shelf.answer("Hello", tools=tools, instructions="i" * 500))[0]
    ancestors: tuple[str, ...] = ()
    said: list[Item] = []
    for number in range(QUESTIONS):
        said.append({"role": "user", "content": f"Question {number}: " + "q" * 100})
        if (number + 1) * links // QUESTIONS == len(ancestors):
            said += made["output"]
            continue
        own = StoredInput(said, ancestors, 0, 1)
        shelf.entries.update(record(f"{number:024x}", own, {**made, "tools": tools}, 1, 100).entries)
        ancestors, said = (*ancestors, response_id(f"{number:024x}")), []
    assert len(ancestors) == links
    return shelf, ancestors[-1]


def test_a_history_costs_what_its_items_cost_however_many_responses_it_consists_of() -> None:
    """The look-ups, the bytes of the entries, and the calls and the memory that read them are counted."""
    few, many = (chained(links) for links in (20, 512))
    read = []
    for shelf, previous in (few, many):
        work = count_work(lambda: shelf.read("And?", previous_response_id=previous))  # noqa: B023 (called at once)
        assert len(shelf.read("And?", previous_response_id=previous).conversation.turns) == 2 * QUESTIONS + 1
        read.append((shelf.steps, shelf.looked_up, work))
    (steps, size, small), (more_steps, larger, large) = read
    assert steps == more_steps == 2
    assert larger <= 1.5 * size
    assert growth(small, large) <= 1.5


def test_a_record_grows_with_its_own_items_only() -> None:
    shelf = Shelf()
    request = shelf.read("x" * 10_000)
    identity, first = shelf.record(request)
    shelf.entries.update(first.entries)
    _, second = shelf.record(shelf.read("More", previous_response_id=identity))
    assert sum(len(data) for _, data in second.entries) < 3_000
    assert (first.links, second.links) == (1, 2)
    assert first.size > 10_000 and first.size < second.size < first.size + 3_000


def test_a_history_is_renewed_from_time_to_time() -> None:
    shelf = Shelf()
    previous: dict[str, Any] = {}
    renewed: list[int] = []
    for shelf.now in (1000, 1099, 1101, 1200, 1201, 1301):
        identity, made = shelf.record(shelf.read("More", **previous))
        shelf.entries.update(made.entries)
        assert set(made.renewed) <= shelf.entries.keys()
        renewed.append(len(made.renewed))
        previous = {"previous_response_id": identity}
    assert renewed == [0, 0, 4, 0, 8, 10]


@pytest.mark.parametrize("form", [{"type": "item_reference"}, {}], ids=["typed", "id_alone"])
def test_a_reference_stands_for_the_item_that_it_names(form: dict[str, Any]) -> None:
    shelf = Shelf()
    first = shelf.answer("Look", CALLS)
    second = shelf.answer("Hello", REASONED)
    message = f"msg_{second.removeprefix('resp_')}01"
    call = f"fc_{first.removeprefix('resp_')}00"
    asked = f"msg_{second.removeprefix('resp_')}i0"
    names = [asked, call, "rs_theirs", message]
    turns = shelf.read([*({**form, "id": name} for name in names), {"role": "user", "content": "?"}]).conversation.turns
    whole = shelf.read(
        [
            {"role": "user", "content": "Hello"},
            {"type": "function_call", "call_id": "call_a", "name": "look", "arguments": "{}"},
            {"type": "reasoning", "id": "rs_theirs", "content": [{"text": "Hm."}], "encrypted_content": "gAAA"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "?"},
        ]
    ).conversation.turns
    assert [(turn.role, turn.blocks, turn.index) for turn in turns] == [
        (turn.role, turn.blocks, turn.index) for turn in whole
    ]


def test_what_a_reference_named_is_stored_with_the_answer() -> None:
    shelf = Shelf()
    first = shelf.answer("Hello")
    message = f"msg_{first.removeprefix('resp_')}00"
    second = shelf.answer([{"role": "user", "content": "Hello"}, {"type": "item_reference", "id": message}])
    for name in [name for name in shelf.entries if first in name]:
        del shelf.entries[name]
    turns = shelf.read("More", previous_response_id=second).conversation.turns
    assert [turn.text for turn in turns] == ["Hello", "Hello.\nHello.", "More"]


def test_a_reference_to_the_history_before_the_request_adds_nothing() -> None:
    shelf = Shelf()
    first = shelf.answer("Hello", REASONED)
    names = ["rs_theirs", f"msg_{first.removeprefix('resp_')}01"]
    items = [*({"type": "item_reference", "id": name} for name in names), {"role": "user", "content": "More"}]
    conversation = shelf.read(items, previous_response_id=first).conversation
    assert [turn.text for turn in conversation.turns] == ["Hello", "Hello.", "More"]
    assert [(notice.rule, notice.index) for notice in conversation.notices if notice.level == "info"] == [
        ("ITEM_REPEATED", 0),
        ("ITEM_REPEATED", 1),
    ]
    assert conversation.turns[-1].index == 2


@pytest.mark.parametrize("name", ["rs_unknown", "msg_00000000000000000000000100", "msg_000000000000000000000001i0"])
def test_a_reference_to_nothing_stored_is_refused(name: str) -> None:
    error = refused(Shelf(), [{"role": "user", "content": "x"}, {"type": "item_reference", "id": name}])
    assert (error.status, error.code, error.param) == (400, "item_not_found", "input[1]")


@pytest.mark.parametrize("identity", [None, 7, ""])
def test_a_reference_has_an_id(identity: Any) -> None:
    error = refused(Shelf(), [{"type": "item_reference", "id": identity}])
    assert (error.status, error.param) == (400, "input[0].id")


def test_the_number_of_responses_that_references_name_is_bounded() -> None:
    items = [{"type": "item_reference", "id": f"rs_{n}"} for n in range(600)]
    assert refused(Shelf(), items).param == "input[512]"


def test_an_item_id_of_a_backend_is_no_name_of_another_entry() -> None:
    shelf = Shelf()
    first = shelf.answer("Hello")
    evil: tuple[Event, ...] = (
        ResponseStart(),
        PassthroughFields(
            "event", {"type": "response.output_item.done", "item": {"id": first, "type": "web_search_call"}}
        ),
        Finish("stop"),
    )
    shelf.answer("Search", evil)
    turns = shelf.read("More", previous_response_id=first).conversation.turns
    assert [turn.text for turn in turns] == ["Hello", "Hello.", "More"]


def test_only_a_request_that_wants_it_is_stored() -> None:
    assert Shelf().read(store=False).to_store is None
    assert Shelf().read(store=True).to_store is not None
    assert Shelf().read().to_store is not None, "true is the default of the API"


def test_a_request_without_references_asks_for_nothing() -> None:
    shelf = Shelf()
    shelf.read([{"role": "user", "content": "x"}])
    assert shelf.steps == 0


def test_the_history_is_read_as_a_client_that_sends_it_would_write_it() -> None:
    shelf = Shelf()
    first = shelf.answer("Hello", CALLS, tools=TOOLS)
    output: Any = {"type": "function_call_output", "call_id": "call_a", "output": "y"}
    chained = shelf.read([output], previous_response_id=first, tools=TOOLS).conversation
    (response, _) = shelf.query("GET", "/v1/responses/{id}", first)
    whole = read([{"role": "user", "content": "Hello"}, *response["output"], output], tools=TOOLS)
    assert chained.turns[0].blocks == (Text("Hello"),)
    assert [DIALECT.encode_turn(turn) for turn in chained.turns] == [DIALECT.encode_turn(turn) for turn in whole.turns]
