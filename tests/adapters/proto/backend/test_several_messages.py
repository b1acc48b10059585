"""One turn becomes several messages: texts, lists of calls, lists of results, and one call a message."""

import copy
from typing import Any

import pytest

from adapters.proto.backend.call_turns import one_call_a_turn
from gateway.adapter import FieldPlace
from gateway.core.conversation import (
    Conversation,
    Json,
    NamedTool,
    Reasoning,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import Unsupported
from gateway.core.policy import Policy
from tests.adapters.proto.backend.mappings import FORMS, LISTS, SINGLE, Entry
from tests.adapters.proto.backend.test_encode import USER, adapter, sent
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
        'function {"result":"result c9"}',
        WALKED,
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


def with_ids() -> Entry:
    """The mapping of `single` with ids, in the content of results."""
    return turns_of(SINGLE, "tool", {"role": "function", "name": "$name", "content": {"$json": ["$id", "$text"]}})


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
    names: Json = {"all": ["first", {"$each": "$calls", "as": ["$name", {"id": "$id"}]}, "last"]}
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
    assert ("tool_choice" in made.capabilities.supported_params) is (words != ("auto", "none"))


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
