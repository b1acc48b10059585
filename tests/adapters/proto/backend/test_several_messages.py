"""One turn becomes several messages: texts, lists of calls, lists of results, and one call a message."""

import copy
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from adapters.proto.backend.call_turns import one_call_a_turn
from adapters.proto.backend.schema import message_class
from gateway.adapter import FieldPlace
from gateway.core.conversation import (
    Block,
    Conversation,
    Json,
    NamedTool,
    Reasoning,
    Sampling,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import Unsupported
from gateway.core.policy import Policy
from gateway.core.provider_state import with_provider_state
from gateway.history.prepare import prepare
from gateway.testing.strategies import conversations
from tests.adapters.proto.backend.grpc_server import sends
from tests.adapters.proto.backend.mappings import DELTAS, FORMS, LISTS, SINGLE, Entry
from tests.adapters.proto.backend.services import ANSWERS, METHODS
from tests.adapters.proto.backend.test_encode import USER, adapter, sent
from tests.adapters.proto.backend.test_grpc import TOOLS as SERVED_TOOLS
from tests.adapters.proto.backend.test_grpc import served
from tests.adapters.proto.backend.test_mistakes import refusal

TOOLS = (ToolSpec("look", "Looks.", {"type": "object"}), ToolSpec("walk"))


def conversation(*added: Turn) -> Conversation:
    return Conversation((USER, *added), TOOLS, model="m")


def calling(*calls: tuple[str, str], text: str = "") -> Turn:
    """A turn with calls of these ids and names."""
    said = (Text(text),) if text else ()
    return Turn("assistant", (*said, *(ToolCall(i, name, f'{{"of":"{i}"}}') for i, name in calls)), index=1)


def results(*ids: str) -> tuple[Turn, ...]:
    return tuple(Turn("tool", (ToolResult(i, (Text(f"result {i}"),)),)) for i in ids)


def rounds(count: int) -> tuple[Turn, ...]:
    """A loop of so many calls, each with its result."""
    return tuple(
        turn for n in range(count) for turn in (calling((f"c{n}", "look"), text=f"Step {n}."), *results(f"c{n}"))
    )


BOTH = (("c1", "look"), ("c2", "walk"))
SITUATIONS: dict[str, tuple[Turn, ...]] = {
    "plain": (Turn("assistant", (Text("There."),)), USER),
    "parallel": (calling(*BOTH, text="I look."), *results("c1", "c2")),
    "silent": (calling(*BOTH), *results("c1", "c2")),
    "odd order": (calling(*BOTH, text="I look."), *results("c2", "c1")),
    "one turn of results": (
        calling(*BOTH),
        Turn("tool", tuple(r for turn in results("c2", "c1") for r in turn.results)),
    ),
    "loop": rounds(5),
    "orphan": (calling(*BOTH), *results("c1", "c9", "c2")),
    "unanswered": (calling(*BOTH), USER),
    "text behind": (
        Turn("assistant", (ToolCall("c1", "look", "{}"), Text("and"), ToolCall("c2", "walk", "{}"), Text("!"))),
    ),
}


def listed(message: Any) -> list[str]:
    """Each message of `lists` in one line. (Any: its class exists only at run time.)"""
    kinds: dict[str, Any] = {
        "text": lambda one: one.text,
        "call_list": lambda one: " ".join(call.name for call in one.call_list.calls),
        "result_list": lambda one: " ".join(f"{r.name or '?'}={r.content}" for r in one.result_list.results),
    }
    return [f"{one.WhichOneof('content')}: {kinds[one.WhichOneof('content')](one)}" for one in message.messages[1:]]


AS_LISTS: dict[str, list[str]] = {
    "plain": ["text: There.", "text: Where?"],
    "parallel": ["text: I look.", "call_list: look walk", "result_list: look=result c1 walk=result c2"],
    "silent": ["call_list: look walk", "result_list: look=result c1 walk=result c2"],
    "odd order": ["text: I look.", "call_list: look walk", "result_list: look=result c1 walk=result c2"],
    "one turn of results": ["call_list: look walk", "result_list: look=result c1 walk=result c2"],
    "loop": [
        line for n in range(5) for line in (f"text: Step {n}.", "call_list: look", f"result_list: look=result c{n}")
    ],
    "orphan": ["call_list: look walk", "result_list: look=result c1 walk=result c2 ?=result c9"],
    "unanswered": ["call_list: look walk", "text: Where?"],
    "text behind": ["text: and\n!", "call_list: look walk"],
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_turn_is_a_text_and_a_list_of_calls_and_parallel_results_are_one_message(situation: str) -> None:
    assert listed(sent("lists", LISTS, conversation(*SITUATIONS[situation]))) == AS_LISTS[situation]


def single(message: Any) -> list[str]:
    """Each message of `single` in one line. (Any: its class exists only at run time.)"""
    made = []
    for one in message.messages[1:]:
        call = f"{one.function_call.name}({one.function_call.arguments})" if one.HasField("function_call") else ""
        made.append(" ".join(part for part in (one.role, one.name, one.content, call) if part))
    return made


CALLED = {name: f'{name}({{"of":"{i}"}})' for i, name in BOTH}
LOOKED, WALKED = 'function look {"result":"result c1"}', 'function walk {"result":"result c2"}'
AS_SINGLE: dict[str, list[str]] = {
    "plain": ["assistant There.", "user Where?"],
    "parallel": [f"assistant I look. {CALLED['look']}", LOOKED, f"assistant {CALLED['walk']}", WALKED],
    "silent": [f"assistant {CALLED['look']}", LOOKED, f"assistant {CALLED['walk']}", WALKED],
    "odd order": [f"assistant I look. {CALLED['look']}", LOOKED, f"assistant {CALLED['walk']}", WALKED],
    "one turn of results": [f"assistant {CALLED['look']}", LOOKED, f"assistant {CALLED['walk']}", WALKED],
    "loop": [
        line
        for n in range(5)
        for line in (f'assistant Step {n}. look({{"of":"c{n}"}})', f'function look {{"result":"result c{n}"}}')
    ],
    "orphan": [
        f"assistant {CALLED['look']}",
        LOOKED,
        f"assistant {CALLED['walk']}",
        WALKED,
        'function {"result":"result c9"}',
    ],
    "unanswered": [f"assistant {CALLED['look']}", f"assistant {CALLED['walk']}", "user Where?"],
    "text behind": ["assistant look({})", "assistant and\n! walk({})"],
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_call_is_a_message_with_its_result_behind_it(situation: str) -> None:
    asked = conversation(*SITUATIONS[situation])
    assert single(sent("single", SINGLE, asked)) == AS_SINGLE[situation]
    rules = [notice.rule for notice in adapter(SINGLE).encode(asked, Policy()).notices]
    paired = situation not in ("plain", "loop", "unanswered", "text behind")
    assert ("RESULTS_IN_CALL_ORDER" in rules) is paired


def test_calls_of_one_id_get_their_results_one_by_one() -> None:
    twice = (calling(("c1", "look"), ("c1", "walk")), *results("c1", "c1"))
    lines = single(sent("single", SINGLE, conversation(*twice)))
    assert [line.split()[0] for line in lines] == ["assistant", "function", "assistant", "function"]


WITH_ID = {"role": "function", "name": "$name", "content": {"$json": ["$id", "$text"]}}
CALL_WITH_ID = {"$call": {"name": "$name", "arguments": {"$json": ["$id", "$arguments"]}}}


def with_ids() -> Entry:
    """The mapping of `single` with ids, in the arguments of calls and in the content of results."""
    call = {"role": "assistant", "content": "$text", "function_call": CALL_WITH_ID}
    return turns_of(turns_of(SINGLE, "tool", WITH_ID), "assistant", call)


def turns_of(entry: Entry, role: str, form: Any) -> Entry:
    """The mapping with another form of the turns of one role. (Any: JSON at any depth.)"""
    made = copy.deepcopy(entry)
    made["request"]["messages"][role] = form
    return made


def test_a_wire_with_ids_keeps_the_results_behind_all_calls() -> None:
    asked = conversation(*SITUATIONS["odd order"])
    lines = single(sent("single", with_ids(), asked))
    assert [line.split()[0] for line in lines] == ["assistant", "assistant", "function", "function"]
    assert lines[2] == 'function walk ["c2","result c2"]'
    assert adapter(with_ids()).encode(asked, Policy()).notices == ()


@pytest.mark.parametrize("side", ["calls", "results"])
def test_ids_of_one_side_pair_nothing(side: str) -> None:
    both = with_ids()["request"]["messages"]
    role = {"calls": "assistant", "results": "tool"}[side]
    asked = conversation(*SITUATIONS["odd order"])
    entry = turns_of(SINGLE, role, both[role])
    lines = single(sent("single", entry, asked))
    assert [line.split()[1] for line in lines if line.startswith("function")] == ["look", "walk"]
    assert [line.split()[0] for line in lines] == ["assistant", "function"] * 2
    details = [notice.detail for notice in adapter(entry).encode(asked, Policy()).notices]
    assert details == [
        "the backend has no field for call id (2) of messages",
        "each result was put behind its call: the wire has one call a message",
    ]


def test_a_result_of_an_unknown_call_follows_that_of_the_one_call() -> None:
    orphaned = conversation(calling(("c1", "look")), *results("c9", "c1"))
    lines = single(sent("single", SINGLE, orphaned))
    assert lines[1:] == [LOOKED, 'function {"result":"result c9"}']
    rules = [notice.rule for notice in adapter(SINGLE).encode(orphaned, Policy()).notices]
    assert "RESULTS_IN_CALL_ORDER" in rules


@pytest.mark.parametrize(
    "turns",
    [
        (calling(("c1", "look")), *results("c1"), calling(("c1", "walk")), *results("c1")),
        (calling(("c1", "look"), ("c1", "walk")), *results("c1", "c1")),
    ],
    ids=["in two turns", "in one turn"],
)
def test_a_result_has_the_name_of_its_own_call_where_ids_are_equal(turns: tuple[Turn, ...]) -> None:
    lines = listed(sent("lists", LISTS, conversation(*turns)))
    results_of = " ".join(line.removeprefix("result_list: ") for line in lines if line.startswith("result_list"))
    assert results_of == "look=result c1 walk=result c1"


def sealed(state: str | None) -> Conversation:
    extra = {} if state is None else with_provider_state("acme", {"seal": state})
    return Conversation((USER, Turn("assistant", (Reasoning("Hm.", extra=extra), Text("!")), index=1)))


def test_reasoning_is_sent_with_its_state_or_without_and_is_told_where_neither_has_a_place() -> None:
    def thinking(*forms: Json) -> tuple[list[str], list[str]]:
        """What is sent of reasoning without state, and the notices."""
        entry = copy.deepcopy(FORMS)
        blocks = [*forms, {"text": "$text"}]
        entry["request"]["entries"]["assistant"] = {"role": "model", "blocks": blocks}
        # The mapping of `forms` has state at its calls, too.
        calls: Json = {"$each": "$calls", "as": {"call": {"name": "$name", "fields": "$arguments", "seal": "$opaque"}}}
        entry["request"]["entries"]["assistant"]["blocks"].append(calls)
        made = sent("forms", entry, sealed(None)).entries[1].blocks
        notices = adapter(entry).encode(sealed(None), Policy()).notices
        assert [one.rule for one in adapter(entry).encode(sealed("c2VhbGVk"), Policy()).notices] == []
        return [one.thought.text or one.text for one in made], [one.rule for one in notices]

    with_state: Json = {"$with": "$opaque", "thought": {"text": "$reasoning", "seal": "$opaque"}}
    bare: Json = {"$without": "$opaque", "thought": {"text": "$reasoning"}}
    value: Json = {"thought": {"text": {"$with": "$opaque", "as": "$reasoning"}, "seal": "$opaque"}}
    assert thinking(with_state) == (["!"], ["REASONING_NOT_SENT"])
    assert thinking(value) == (["!"], ["REASONING_NOT_SENT"])
    assert thinking(with_state, bare) == (["Hm.", "!"], [])


WITH_STATE = {"$with": "$opaque", "thought": {"text": "$reasoning", "seal": "$opaque"}}
WITH_REASONING = {"$with": "$reasoning", "thought": {"text": "$reasoning", "seal": "$opaque"}}


@pytest.mark.parametrize(
    ("form", "thoughts", "made", "told"),
    [
        (WITH_STATE, [("one", "b25l"), ("two", "dHdv")], ("one", b"one"), 1),
        (WITH_STATE, [("one", "b25l"), ("two", None)], ("one", b"one"), 1),
        (WITH_STATE, [("one", None), ("two", "dHdv")], ("two", b"two"), 1),
        (WITH_STATE, [("", "b25l")], ("", b"one"), 0),
        (WITH_REASONING, [("", "b25l")], ("", b""), 1),
        (WITH_REASONING, [("one", None), ("two", None)], ("one\ntwo", b""), 0),
    ],
)
def test_state_is_sent_with_its_own_reasoning_and_what_is_left_out_is_told(
    form: Json, thoughts: list[tuple[str, str | None]], made: tuple[str, bytes], told: int
) -> None:
    entry = copy.deepcopy(FORMS)
    calls: Json = {"$each": "$calls", "as": {"call": {"name": "$name", "fields": "$arguments", "seal": "$opaque"}}}
    entry["request"]["entries"]["assistant"] = {"role": "model", "blocks": [form, {"text": "$text"}, calls]}
    blocks = [
        Reasoning(text, extra=with_provider_state("acme", {"seal": state}) if state else {}) for text, state in thoughts
    ]
    asked = Conversation((USER, Turn("assistant", (*blocks, Text("!")), index=1)))
    thought = sent("forms", entry, asked).entries[1].blocks[0].thought
    assert (thought.text, thought.seal) == made
    rules = [notice.rule for notice in adapter(entry).encode(asked, Policy()).notices]
    assert rules == ["REASONING_NOT_SENT"] * told


def without_state_of(owner: str) -> Entry:
    entry = copy.deepcopy(FORMS)
    blocks = entry["request"]["entries"]["assistant"]["blocks"]
    place = blocks["call"]["call"] if owner == "call" else blocks["reasoning"]["thought"]
    for key in ("seal", "$with"):
        place.pop(key, None)
    return entry


@pytest.mark.parametrize("owner", ["call", "reasoning"])
def test_state_that_a_rule_reads_needs_a_place_at_its_owner(owner: str) -> None:
    said = f"backends.x.request: the mapping has a rule `opaque` on the {owner}, but no $opaque at a {owner}"
    assert refusal(without_state_of(owner)) == said


def test_state_beside_a_turn_stays_with_its_first_call() -> None:
    turn = Turn("assistant", (Reasoning("Hm."), *calling(*BOTH).blocks), index=4, extra={"extra_content": {"x": {}}})
    parts, _ = one_call_a_turn((turn,), paired_by_place=True)
    assert [(part.index, bool(part.extra), len(part.blocks)) for part in parts] == [(4, True, 2), (4, False, 1)]


def together(entry: Entry, path: Json) -> Entry:
    made = copy.deepcopy(entry)
    made["request"]["messages"]["together"] = path
    return made


def test_equal_messages_without_the_list_stay_two() -> None:
    again = (USER, USER)
    assert listed(sent("lists", LISTS, conversation(*again))) == ["text: Where?", "text: Where?"]


def test_a_message_without_a_list_joins_nothing() -> None:
    assert refusal(together(LISTS, True)).startswith(
        "backends.x.request.messages.together: acme.lists.v1.Message has no repeated field in which to join items"
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("result_lst.results", "acme.lists.v1.Message has no field 'result_lst'; did you mean 'result_list'?"),
        ("result_list.result", "acme.lists.v1.ResultList has no field 'result'; did you mean 'results'?"),
        (
            "result_list",
            "'result_list' is of acme.lists.v1.ResultList, which is not repeated; neighbours are joined in",
        ),
        ("result_list.results.name", "'results' is repeated; the path ends there"),
        ("text.results", "'text' is of string, which has no fields"),
        (7, "write true, false, or the path of a repeated field"),
    ],
)
def test_a_wrong_path_of_together_is_told(path: Json, said: str) -> None:
    assert refusal(together(LISTS, path)).startswith(f"backends.x.request.messages.together: {said}")


ASSISTANT = LISTS["request"]["messages"]["assistant"]
SAYING, CALLING = ASSISTANT
MISTAKES: list[tuple[Entry, str]] = [
    (turns_of(LISTS, "assistant", [SAYING]), "request: the mapping has $tools, but no place for the calls of a turn"),
    (
        turns_of(LISTS, "assistant", [SAYING, {**CALLING, "$without": "$text"}]),
        "request: no field gets the calls of a turn beside text",
    ),
    (turns_of(LISTS, "assistant", [CALLING]), "request: no field gets the text of the role 'assistant'"),
    (
        turns_of(LISTS, "assistant", [SAYING, {**CALLING, "$with": ["$calls", "$text"]}]),
        "request: no field gets the calls of a turn without text",
    ),
    (
        turns_of(LISTS, "assistant", [{**SAYING, "$without": "$calls"}, CALLING]),
        "request: no field gets the text of the role 'assistant' beside calls",
    ),
    (
        turns_of(LISTS, "assistant", {"role": "assistant", "text": "$text", "call_list": CALLING["call_list"]}),
        "request.messages.assistant: 'text' and 'call_list' are of one oneof; give one $with and the other $without",
    ),
    (
        turns_of(LISTS, "assistant", [{**SAYING, "$with": ["$text", "$cals"]}, CALLING]),
        "request.messages.assistant[0].$with: there is no name '$cals' here; did you mean '$calls'?",
    ),
    (
        turns_of(LISTS, "assistant", [{**SAYING, "$without": "$text"}, CALLING]),
        "request.messages.assistant[0].$without: $text is in $with, too",
    ),
    (
        turns_of(LISTS, "assistant", [{**SAYING, "$with": []}, CALLING]),
        'request.messages.assistant[0].$with: write one name, such as "$system", or a list of names',
    ),
    (
        turns_of(SINGLE, "user", {"role": "user", "content": "$text", "function_call": {"$call": {"name": "$name"}}}),
        "request.messages.user.function_call.$call: only the variant 'assistant' of $turns has calls",
    ),
    (
        turns_of(SINGLE, "assistant", {"content": "$text", "function_call": {"$call": {"nam": "$name"}}}),
        "request.messages.assistant.function_call.$call.nam: acme.single.v1.FunctionCall has no field 'nam'",
    ),
    (
        turns_of(SINGLE, "assistant", {"content": {"$with": "$text", "a": "$text"}}),
        "request.messages.assistant.content.a: unknown key 'a'; there are '$with', '$without', '$case', '$call'",
    ),
    (
        turns_of(
            LISTS, "assistant", [SAYING, {"call_list": {"calls": [{"arguments": {"$each": "$calls", "as": {}}}]}}]
        ),
        "request.messages.assistant[1].call_list.calls[0].arguments: $each cannot stand here: it gives several items,",
    ),
    (
        turns_of(SINGLE, "assistant", {"content": {"$without": "$calls"}}),
        "request.messages.assistant.content: $without needs the key 'as': the field is of string",
    ),
    (
        turns_of(LISTS, "assistant", [[SAYING], CALLING]),
        "request.messages.assistant[0]: a list cannot stand in a list; write its items beside the others",
    ),
]


@pytest.mark.parametrize(("entry", "said"), MISTAKES, ids=[said[:70] for _, said in MISTAKES])
def test_a_template_that_loses_a_part_is_refused(entry: Entry, said: str) -> None:
    assert refusal(entry).startswith(f"backends.x.{said}")


def test_fields_of_one_oneof_may_exclude_each_other_by_their_conditions() -> None:
    both: Entry = {
        "role": "assistant",
        "text": {"$with": "$text", "$without": "$calls", "as": "$text"},
        "call_list": {"$with": "$calls", **CALLING["call_list"]},
    }
    # The text beside calls is lost, so that only the other check refuses it.
    assert "beside calls" in refusal(turns_of(LISTS, "assistant", both))
    rest: Entry = {"$with": ["$text", "$calls"], "role": "assistant", "text": "$text"}
    entry = turns_of(LISTS, "assistant", [rest, both])
    assert listed(sent("lists", entry, conversation(*SITUATIONS["parallel"]))) == AS_LISTS["parallel"]
    assert listed(sent("lists", entry, conversation(*SITUATIONS["plain"]))) == AS_LISTS["plain"]


def test_an_each_in_a_list_gives_several_messages() -> None:
    one: Json = {"role": "assistant", "call_list": {"calls": [{"name": "$name", "arguments": "$arguments"}]}}
    entry = turns_of(LISTS, "assistant", [SAYING, {"$each": "$calls", "as": one}])
    lines = listed(sent("lists", entry, conversation(*SITUATIONS["parallel"])))
    assert lines[:3] == ["text: I look.", "call_list: look", "call_list: walk"]


def test_calls_are_parts_of_json_and_of_a_struct() -> None:
    names: Entry = {"all": ["first", {"$each": "$calls", "as": ["$name", {"id": "$id"}]}, "last"]}
    names["arguments"] = {"$each": "$calls", "as": "$arguments"}
    call = {"name": "x", "arguments": names}
    entry = turns_of(LISTS, "assistant", [SAYING, {**CALLING, "call_list": {"calls": [call]}}])
    (_, calls, _) = sent("lists", entry, conversation(*SITUATIONS["parallel"])).messages[1:]
    found = [*calls.call_list.calls[0].arguments["all"]]
    assert [found[0], found[1], dict(found[2]), found[3], found[-1]] == ["first", "look", {"id": "c1"}, "walk", "last"]


def test_a_whole_history_may_be_json() -> None:
    history: Json = {
        "$json": {
            "$each": "$turns",
            "by": "$role",
            "system": {"by": "system", "text": "$text"},
            "user": {"by": "user", "text": "$text"},
            "assistant": [
                {"$with": "$text", "by": "model", "text": "$text"},
                {"$each": "$calls", "as": {"by": "model", "calls": "$name", "with": "$arguments"}},
            ],
            "tool": {"by": "tool", "of": "$name", "text": "$text"},
        }
    }
    entry = copy.deepcopy(LISTS)
    entry["request"]["messages"] = [{"role": "all", "text": history}]
    message = sent("lists", entry, conversation(*SITUATIONS["parallel"]))
    assert message.messages[0].text == (
        '[{"by":"user","text":"Where?"},{"by":"model","text":"I look."},'
        '{"by":"model","calls":"look","with":"{\\"of\\":\\"c1\\"}"},'
        '{"by":"model","calls":"walk","with":"{\\"of\\":\\"c2\\"}"},'
        '{"by":"tool","of":"look","text":"result c1"},{"by":"tool","of":"walk","text":"result c2"}]'
    )


def choice_of(entry: Entry, *words: str) -> Entry:
    """The mapping of `lists` with these words of its choice."""
    made = copy.deepcopy(entry)
    choice = made["request"]["choice"]
    made["request"]["choice"] = {word: choice[word] for word in ("$case", *words)}
    return made


@pytest.mark.parametrize(
    ("words", "choice", "said"),
    [
        (("required",), NamedTool("look"), "to call 'look' ('named'), only to call any tool."),
        (("named",), "required", "to call any tool ('required'), only to call a named one."),
        (("auto", "none"), "required", "to call any tool ('required')."),
    ],
)
def test_a_choice_without_a_word_is_refused_by_name_and_alone(
    words: tuple[str, ...], choice: ToolChoice, said: str
) -> None:
    made = adapter(choice_of(LISTS, *words))
    known: list[ToolChoice] = ["auto", "none", *(["required"] if "required" in words else [NamedTool("look")])]
    for other in known if words != ("auto", "none") else known[:2]:
        made.encode(Conversation((USER,), TOOLS, other), Policy())
    with pytest.raises(Unsupported) as refused:
        made.encode(Conversation((USER,), TOOLS, choice), Policy())
    assert refused.value.message == f"tool_choice is not supported: this model's backend cannot be forced {said}"
    assert refused.value.param == "tool_choice"
    assert "tool_choice" in made.capabilities.supported_params


def test_the_places_of_a_list_of_messages_are_told() -> None:
    asked = conversation(*SITUATIONS["parallel"])
    places = {one.field: one for one in adapter(LISTS).field_places(asked, Policy())}
    base = "request.messages"
    assert places["messages[1].text"] == FieldPlace("messages[1].text", f"{base}.assistant[0].text", "I look.")
    assert places["messages[2].call_list.calls[1].name"].place == f"{base}.assistant[1].call_list.calls.as.name"
    assert places["messages[3].result_list.results[1].content"] == FieldPlace(
        "messages[3].result_list.results[1].content", f"{base}.tool.result_list.results[0].content", "result c2"
    )
    one = {one.field: one for one in adapter(SINGLE).field_places(asked, Policy())}
    assert one["messages[3].function_call.name"].place == f"{base}.assistant.function_call.$call.name"


def test_a_path_of_one_step_joins_as_true_does() -> None:
    entry = copy.deepcopy(FORMS)
    entry["request"]["entries"]["together"] = "blocks"
    assert [len(one.blocks) for one in sent("forms", entry, Conversation((USER, USER))).entries] == [2]


def test_a_value_in_json_has_a_condition() -> None:
    failed: Json = {"$json": ["$text", {"$with": "$is_error", "as": "failed"}, {"$without": "$is_error", "as": "fine"}]}
    entry = turns_of(SINGLE, "tool", {"role": "function", "content": failed})
    lines = single(sent("single", entry, conversation(*SITUATIONS["parallel"])))
    assert lines[1] == 'function ["result c1","fine"]'


def with_tools(form: Json) -> list[str]:
    """The names of the tools of a request of `lists` with this form of them."""
    entry = copy.deepcopy(LISTS)
    entry["request"]["tools"] = form
    return [tool.function.name for tool in sent("lists", entry, conversation()).tools]


def test_items_have_conditions_and_cases() -> None:
    each: Json = {"$each": "$tools", "as": {"function": {"name": "$name", "parameters": "$parameters"}}}
    fixed: Json = {"function": {"name": "search"}}
    assert with_tools([fixed, each]) == ["search", "look", "walk"]
    assert with_tools({"$with": "$tools", "as": [each, fixed]}) == ["look", "walk", "search"]
    assert with_tools([{"$without": "$tools", "as": [fixed]}, each]) == ["look", "walk"]
    assert with_tools({"$case": "$choice", "auto": [fixed, each], "required": [each]}) == ["search", "look", "walk"]
    assert with_tools([each, {"$case": "$choice", "required": fixed}]) == ["look", "walk"]


def test_a_list_of_texts_is_part_of_a_list() -> None:
    asked = Conversation((USER,), sampling=Sampling(stop=("one", "two")))
    turned = {"model": "m", "stop": ["END", "$stop"], "messages": DELTAS["request"]["messages"]}
    deltas = {**DELTAS, "request": {**DELTAS["request"], **turned}}
    assert [*sent("deltas", deltas, asked).stop] == ["END", "one", "two"]
    fields = {one.field: one.place for one in adapter(deltas).field_places(asked, Policy())}
    assert (fields["stop[0]"], fields["stop[2]"]) == ("request.stop[0]", "request.stop[1]")


@given(conversations(tools=True))
def test_every_call_and_every_result_stays_and_a_turn_has_one_call(asked: Conversation) -> None:
    turns = prepare(asked, Policy()).conversation.turns
    for paired in (True, False):
        made, _ = one_call_a_turn(turns, paired_by_place=paired)
        assert all(len(turn.calls) <= 1 for turn in made)
        assert [call for turn in made for call in turn.calls] == [call for turn in turns for call in turn.calls]
        assert Counter(map(repr, blocks(made))) == Counter(map(repr, blocks(turns)))
        if not paired:
            assert blocks(made) == blocks(turns)
    ids = [call.id for turn in turns for call in turn.calls]
    made, _ = one_call_a_turn(turns, paired_by_place=True)
    if len(ids) == len({*ids}):
        for before, turn in pairwise(made):
            if turn.role == "tool" and before.role == "assistant":
                assert [call.id for call in before.calls] == [result.call_id for result in turn.results]


def blocks(turns: Sequence[Turn]) -> list[Block]:
    return [block for turn in turns for block in turn.blocks]


LOOP: list[Json] = [
    {"role": "user", "content": "Where?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": i, "type": "function", "function": {"name": name, "arguments": f'{{"of":"{i}"}}'}}
            for i, name in BOTH
        ],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "result c2"},
    {"role": "tool", "tool_call_id": "c1", "content": "result c1"},
]


@pytest.mark.parametrize(
    ("service", "read", "lines"), [("lists", listed, AS_LISTS["silent"]), ("single", single, AS_SINGLE["silent"])]
)
async def test_a_loop_goes_through_a_server_of_grpc(service: str, read: Any, lines: list[str]) -> None:
    async with served(service, sends(ANSWERS[service])) as (gateway, backend):
        response = await gateway.chat(stream=True, messages=LOOP, tools=SERVED_TOOLS)
        assert response.status_code == 200, response.text
        forced = await gateway.chat(messages=LOOP, tools=SERVED_TOOLS, tool_choice="required")
    assert read(message_class(METHODS[service].request).FromString(backend.requests[0])) == lines
    refused = {"lists": (200, 2), "single": (400, 1)}[service]
    assert (forced.status_code, len(backend.requests)) == refused
