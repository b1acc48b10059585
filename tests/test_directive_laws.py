"""Directives in mid-conversation ask a backend that has none for the same as a request that declares, message by
message, what they leave in force; and what such a backend received stays the beginning of what it receives later.

The plain request is made by a reader of its own, which walks over the messages as Anthropic's pages describe it
("Mid-conversation system messages", "Per-message effort").
"""

import itertools
import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.anthropic_messages.client.decode import decode_document
from gateway.core.conversation import Conversation
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.history.directives import in_force
from tests.test_stable_prefix import ADAPTERS, UNLIMITED, WIRES, Wire
from tests.tiers import sample

SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {"at": {"type": "string"}}}
DECLARED: Final[list[dict[str, Any]]] = [
    {"name": name, "description": f"Does {name}", "input_schema": SCHEMA} for name in ("look", "read")
]
INLINE: Final[list[dict[str, Any]]] = [
    {"name": name, "description": f"Does {name}", "input_schema": SCHEMA} for name in ("write", "move")
]
# Those whose models take directives themselves are asked with a model that takes none.
NAMES: Final = [wire.name for wire in WIRES if wire.model == "model" and wire.adapter != "anthropic_messages"]
NAMES_WITH_OLDER: Final = [*NAMES, "Messages, older"]
BY_NAME: Final = {wire.name: wire for wire in WIRES}

Message = dict[str, Any]


def reference(name: str) -> Message:
    return {"type": "tool_reference", "name": name}


def system(content: Any, **fields: Any) -> Message:
    return {"role": "system", "content": content, **fields}


@st.composite
def histories(draw: st.DrawFn, *, stable: bool = False) -> list[Message]:
    """Messages with directives wherever the API permits one. `stable`: none that must change what was sent before, as a
    definition, a text for one turn and a tool that is taken away before the first answer."""
    known = [tool["name"] for tool in DECLARED]
    messages: list[Message] = []

    def direct() -> None:
        if stable and all(message["role"] != "assistant" for message in messages):
            return
        kinds = ["none", "remove", "remove", "add", "add", "effort", "effort", "both"]
        kind = draw(st.sampled_from(kinds if stable else [*kinds, "define", "scope"]))
        match kind:
            case "remove" | "both":
                blocks = [{"type": "tool_removal", "tool": reference(draw(st.sampled_from(known)))}]
                text = [{"type": "text", "text": "Mind."}] if kind == "both" else []
                messages.append(system([*text, *blocks]))
            case "add":
                messages.append(system([{"type": "tool_addition", "tool": reference(draw(st.sampled_from(known)))}]))
            case "define":
                definition = draw(st.sampled_from(INLINE))
                known.append(definition["name"])
                tool = {"type": "tool_definition", "definition": definition}
                messages.append(system([{"type": "tool_addition", "tool": tool}]))
            case "effort":
                messages.append(system([], output_config={"effort": draw(st.sampled_from(["low", "high"]))}))
            case "scope":
                messages.append(system(f"Now {len(messages)}.", clear_at="next_user_message"))
            case _:
                pass

    for number in range(draw(st.integers(1, 5))):
        messages.append({"role": "user", "content": f"question {number}"})
        direct()
        direct()
        if draw(st.booleans()):
            call = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": {"at": "sky"}}
            messages.append({"role": "assistant", "content": [call]})
            result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "seen"}
            messages.append({"role": "user", "content": [result]})
            direct()
        messages.append({"role": "assistant", "content": f"answer {number}"})
        if draw(st.booleans()):
            messages.append(system([], output_config={"effort": draw(st.sampled_from(["low", "high"]))}))
    if draw(st.booleans()):
        messages.append({"role": "user", "content": "last"})
    else:
        call = {"type": "tool_use", "id": "last", "name": "look", "input": {"at": "sky"}}
        messages.append({"role": "user", "content": "Look."})
        messages.append({"role": "assistant", "content": [call]})
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "last", "content": "seen"}]}
        )
    direct()
    direct()
    return messages


def is_new_input(message: Message) -> bool:
    return message["role"] == "user" and isinstance(message["content"], str)


class Walk:
    """Walks over the messages; each changes what was in force before it. `away` says of each tool that is taken away
    whether an answer stands before that."""

    def __init__(self) -> None:
        self.tools = {tool["name"]: tool for tool in DECLARED}
        self.away: dict[str, bool] = {}
        self.effort: str | None = None
        self.said: list[Message] = []
        self._waiting: str | None = None
        self._previous: Message | None = None
        self._answered = False

    def add(self, message: Message, *, asked_later: bool) -> None:
        if message["role"] != "system":
            self._say(message)
        elif word := message.get("output_config", {}).get("effort"):
            if self._previous is not None and is_new_input(self._previous):
                self.effort, self._waiting = word, None
            else:
                self._waiting = word
        elif message.get("clear_at"):
            self.said += [] if asked_later else [system(message["content"])]
        else:
            texts = [block["text"] for block in message["content"] if block["type"] == "text"]
            notes = [note for block in message["content"] for note in self._changed(block)]
            texts += ["\n".join(notes)] if notes else []
            self.said += [system([{"type": "text", "text": text} for text in texts])] if texts else []

    def _say(self, message: Message) -> None:
        if is_new_input(message) and self._waiting is not None:
            self.effort, self._waiting = self._waiting, None
        self._answered = self._answered or message["role"] == "assistant"
        self._previous = message
        self.said.append(message)

    def _changed(self, block: Message) -> list[str]:
        if block["type"] == "text":
            return []
        definition = block["tool"].get("definition")
        name = (definition or block["tool"])["name"]
        if block["type"] == "tool_removal":
            self.away[name] = self._answered
            return [f"The tool `{name}` is no longer available."] if self._answered else []
        self.tools |= {name: definition} if definition else {}
        return [] if self.away.pop(name, None) is None else [f"The tool `{name}` is available from here on."]


def plain(messages: list[Message]) -> Message:
    """The request that says the same without a directive."""
    walk = Walk()
    for at, message in enumerate(messages):
        walk.add(message, asked_later=any(later["role"] == "user" for later in messages[at:]))
    # One that was taken away behind an answer stays declared.
    declared = [tool for name, tool in walk.tools.items() if walk.away.get(name, True)]
    tools: Message = {"tools": declared} if declared else {}
    effort: Message = {"output_config": {"effort": walk.effort}} if walk.effort is not None else {}
    return {"model": "m", "max_tokens": 9, "messages": walk.said, **tools, **effort}


def directed(messages: list[Message], **fields: Any) -> Message:
    return {"model": "m", "max_tokens": 9, "messages": messages, "tools": DECLARED, **fields}


def decoded(body: Message) -> Conversation:
    document = read_document(json.dumps(body).encode())
    return decode_document(document, RequestHead("/v1/messages")).conversation


def sent(wire: Wire, body: Message, policy: Policy = UNLIMITED) -> Any:
    return ADAPTERS[wire.name].describe(exchange(wire, decoded(body), policy).request.body)


def exchange(wire: Wire, conversation: Conversation, policy: Policy = UNLIMITED) -> Exchange:
    named = msgspec.structs.replace(conversation, model=wire.model)
    return Exchange(ADAPTERS[wire.name], named, policy)


@sample()
@pytest.mark.parametrize("name", NAMES_WITH_OLDER)
@settings(max_examples=settings().max_examples // 2)
@given(messages=histories())
def test_directives_ask_for_what_a_request_without_them_would_declare(name: str, messages: list[Message]) -> None:
    wire = BY_NAME[name]
    assert sent(wire, directed(messages)) == sent(wire, plain(messages))


@sample()
@pytest.mark.parametrize("name", NAMES_WITH_OLDER)
@settings(max_examples=settings().max_examples // 2)
@given(messages=histories(stable=True))
def test_a_tool_that_goes_leaves_the_beginning_as_it_is(name: str, messages: list[Message]) -> None:
    wire = BY_NAME[name]
    answered = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    bodies = [sent(wire, directed(messages[:at])) for at in (*answered, len(messages))]
    assert len({json.dumps(body.get("tools")) for body in bodies}) == 1
    for shorter, longer in itertools.pairwise(map(wire.read, bodies)):
        assert shorter.begins(longer), f"{shorter}\n{longer}"


@sample()
@pytest.mark.parametrize("model", ["model", "claude-opus-4-8"])
@settings(max_examples=settings().max_examples // 2)
@given(messages=histories())
def test_a_backend_of_the_same_api_gets_directives_as_they_are(model: str, messages: list[Message]) -> None:
    wire = msgspec.structs.replace(BY_NAME["Messages"], model=model)
    assert sent(wire, directed(messages)) == directed(messages) | {"model": model}


@settings(max_examples=settings().max_examples // 2)
@given(messages=histories(), limit=st.integers(0, 4))
def test_a_directive_that_a_limit_takes_out_is_in_the_fields(messages: list[Message], limit: int) -> None:
    """What the backend would make of what it gets is what the client's own messages leave in force."""
    wire, policy = BY_NAME["Messages"], msgspec.structs.replace(UNLIMITED, max_history_messages=limit)
    body = directed(messages, output_config={"effort": "max"})
    assert left_in_force(sent(wire, body, policy)) == left_in_force(body)


def left_in_force(body: Message) -> tuple[set[str], str]:
    """The tools and the effort that are in force behind a request which its backend reads itself."""
    conversation = decoded(body)
    state = in_force(conversation)
    offered = {tool.name for tool in conversation.tools} - state.removed.keys()
    return offered, body["output_config"]["effort"] if state.effort is None else state.effort.effort
