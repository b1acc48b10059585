"""A request that is read behind a known beginning is the request that its bytes say: for any dialect and backend, and
whatever a client changes between two requests."""

import copy
import gc
import json
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import GatewayError
from gateway.core.policy import FlattenOptions, Labels, Policy
from gateway.dialect import ClientRequest, Dialect, RequestHead
from gateway.dialects import prefix as prefix_module
from gateway.dialects.document import read_document
from gateway.dialects.prefix import Prefix, Reading, read_whole
from gateway.exchange import Exchange
from gateway.providers.registry import PROFILES
from gateway.registry import load_adapter
from gateway.settings import BackendSettings
from gateway.testing.dialect_case import DialectCase
from gateway.testing.strategies import conversations
from gateway.tool_calls.parsers import format as format_module
from gateway.tool_calls.parsers.format import id_prefix
from gateway.tool_calls.parsers.formats import FORMATS
from tests.dialects.cases import CASES
from tests.histories import ANY_PROFILE, requests
from tests.test_budget import calls
from tests.tiers import sample

# A request for a completion has one turn.
CLIENTS: Final = [case for case in CASES if str(case) != "openai_completions"]
CHAT: Final = next(case for case in CASES if str(case) == "openai_chat")
WIRES: Final[dict[str, tuple[str, dict[str, Json]]]] = {
    "chat": ("openai_chat", {}),
    "Responses": ("openai_responses", {}),
    "Messages": ("anthropic_messages", {}),
    "generateContent": ("gemini", {}),
    "text": ("text", {"wire": "llama_cpp"}),
    "Warp": ("warp", {}),
    "Warp, structured": ("warp", {"encoding": "structured"}),
    "gRPC": ("proto", {"preset": "demo"}),
}


def _load(adapter: str, options: dict[str, Json]) -> Adapter:
    entry = BackendSettings(adapter=adapter, base_url="http://host", options=options)
    return load_adapter(adapter, entry, 1 << 20)


ADAPTERS: Final = {name: _load(*wire) for name, wire in WIRES.items()}
FORMATTED: Final = {name: _load("text", {"wire": "llama_cpp", "tool_format": name}) for name in FORMATS}
OTHER_LABELS: Final = FlattenOptions(labels=Labels(user="Person", assistant="Model"))


class Client:
    """Reads one body after the other, each behind what is known of the one before."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._field = dialect.paths.param("messages")
        self._last: Prefix | None = None
        self.known = 0

    def read(self, body: bytes, head: RequestHead) -> ClientRequest:
        known = None if self._last is None else self._last.known(body)
        reading: Reading | None = None if known is None else known.read(self._field, body)
        self.known += reading is not None
        if reading is None:
            reading = read_whole(self._field, body)
        request = reading.settled(self._dialect.decode(reading.document, head))
        self._last = Prefix(reading, request) if reading.is_keepable else None
        return request


def outcome(read: Callable[[], object]) -> str:
    """What is read, in all its values and their types, or the error that a client gets."""
    try:
        return repr(read())
    except GatewayError as error:
        return repr((type(error), error.message, error.code, error.param, error.extra, error.notices))


def sent(adapter: Adapter, conversation: Conversation, policy: Policy) -> object:
    """What a backend receives, and what is told of it."""
    exchange = Exchange(adapter, conversation, policy, label="openai_chat:host:K")
    estimate = exchange.estimate()
    return exchange.request, exchange.notices, exchange.prepared.violations, exchange.profiled, estimate


POLICIES: Final = st.builds(
    Policy,
    max_tool_results=st.sampled_from([None, 1, 10]),
    max_history_messages=st.sampled_from([None, 3, 50]),
    max_tool_result_chars=st.sampled_from([None, None, 4]),
    trim_step=st.sampled_from([1, 10]),
    repair=st.sampled_from(["repair", "repair", "strict", "off"]),
    images=st.sampled_from(["refuse", "placeholder"]),
    tool_loading=st.sampled_from(["all", "on_demand"]),
    profile=st.sampled_from([*PROFILES.values()]) | ANY_PROFILE,
)

# How clients write JSON. A body is found again only if it is written in the same way.
WRITERS: Final[tuple[Callable[[Any], str], ...]] = (
    lambda value: json.dumps(value, separators=(",", ":")),
    json.dumps,
    lambda value: json.dumps(value, ensure_ascii=False, indent=1),
)
_ANY: Final[st.SearchStrategy[Json]] = st.sampled_from([None, 7, "text", [], {}, 8_152_734_069_912_460_357, [{}]])


@st.composite
def edits(draw: st.DrawFn, body: dict[str, Any], field: str, spare: list[Json]) -> dict[str, Any]:
    """A body as its client sends it next: mostly with more messages, and sometimes changed at any place."""
    changed = copy.deepcopy(body)
    history = changed[field]
    for edit in draw(st.lists(st.sampled_from("aaaaaimdtfonx"), max_size=2)) if isinstance(history, list) else ():
        place = draw(st.integers(0, len(history)))
        if edit == "a":
            history += draw(st.lists(st.sampled_from(spare), max_size=3))
        elif edit == "i":
            history.insert(place, draw(st.sampled_from(spare) | _ANY))
        elif edit == "m" and history and isinstance(message := history[place - 1], dict):
            message[draw(st.sampled_from(["content", "role", "cache_control", "name"]))] = draw(_ANY)
        elif edit == "d":
            del history[place:]
        elif edit == "t":
            changed["tools"] = draw(st.sampled_from([[], changed.get("tools", [])[:1], _tools(3), _tools(9)]))
        elif edit == "f":
            changed[draw(st.sampled_from(["model", "temperature", "stream", "metadata"]))] = draw(
                st.sampled_from(["m2", 1, 1.0, True, {"k": [1]}])
            )
        elif edit == "o":
            changed = dict(reversed(changed.items()))
        elif edit == "n":
            # The same text at another place.
            changed["metadata"] = {"messages": copy.deepcopy(history), "tools": changed.get("tools")}
    return changed


def _tools(count: int) -> Json:
    schema: Json = {"type": "object", "properties": {"text": {"type": "string", "description": "x" * 200}}}
    return [{"type": "function", "function": {"name": f"t{n}", "parameters": schema}} for n in range(count)]


def bodies(draw: st.DrawFn, body: dict[str, Any], field: str, spare: list[Json]) -> Iterator[bytes]:
    """Some bodies of one client, each made of the one before."""
    write = draw(st.sampled_from(WRITERS))
    for _ in range(draw(st.integers(2, 5))):
        text = write(body)
        if draw(st.integers(0, 9)) == 0:
            # A field twice, of which the last one counts.
            text = text[:-1] + f', "{field}": {write(draw(st.sampled_from([[], body[field], 7])))}}}'
        data = text.encode("utf-8", "surrogatepass")
        if draw(st.integers(0, 19)) == 0:
            data = data[: draw(st.integers(0, len(data)))]
        yield data
        body = draw(edits(body, field, spare))


@st.composite
def chats(draw: st.DrawFn) -> list[bytes]:
    """Bodies of a chat client, with histories of any shape."""
    body: dict[str, Any] = dict(draw(requests()))
    if draw(st.booleans()):
        body["tools"] = _tools(draw(st.integers(1, 9)))
    spare = [*draw(requests())["messages"], *body["messages"]]  # type: ignore[misc]  # a list
    return [*bodies(draw, body, "messages", spare)]


def read_alike(case: DialectCase, written: list[bytes], head: RequestHead) -> None:
    client, dialect = Client(case.dialect()), case.dialect()
    for body in written:
        plain = outcome(lambda body=body: dialect.decode(read_document(body), head))  # type: ignore[misc]  # bound
        assert outcome(lambda body=body: client.read(body, head)) == plain  # type: ignore[misc]  # bound


@settings(max_examples=2 * settings().max_examples)
@given(chats())
def test_a_request_behind_a_known_beginning_is_read_as_a_whole_one(written: list[bytes]) -> None:
    read_alike(CHAT, written, RequestHead(""))


@sample()
@pytest.mark.parametrize("case", CLIENTS, ids=str)
@given(data=st.data())
def test_so_it_is_in_every_dialect(case: DialectCase, data: st.DataObject) -> None:
    talk, more = data.draw(conversations()), data.draw(conversations())
    field = case.dialect().paths.param("messages")
    spare = json.loads(case.write(more))[field]
    written = data.draw(st.composite(lambda draw: [*bodies(draw, json.loads(case.write(talk)), field, spare)])())
    path, _, query = case.target(talk).partition("?")
    read_alike(case, written, RequestHead(path, query.encode()))


@sample()
@pytest.mark.parametrize("wire", WIRES)
@given(written=chats(), policies=st.lists(POLICIES, min_size=2, max_size=3))
def test_a_backend_receives_the_same(wire: str, written: list[bytes], policies: list[Policy]) -> None:
    dialect, client, adapter = CHAT.dialect(), Client(CHAT.dialect()), ADAPTERS[wire]
    for number, body in enumerate(written):
        try:
            read = client.read(body, RequestHead("")).conversation
        except GatewayError:
            continue
        plain = dialect.decode(read_document(body), RequestHead("")).conversation
        policy = policies[number % len(policies)]
        of_plain = outcome(lambda: sent(adapter, plain, policy))  # noqa: B023  # called at once
        assert outcome(lambda: sent(adapter, read, policy)) == of_plain  # noqa: B023  # called at once


def growing(count: int = 6) -> list[bytes]:
    """The requests of an agent, each with two more messages."""
    tools = json.dumps(_tools(9))
    messages: list[Json] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."}]
    written = []
    for number in range(count):
        written.append(b'{"model":"m","messages":%b,"tools":%b}' % (json.dumps(messages).encode(), tools.encode()))
        function: Json = {"name": "t1", "arguments": "{}"}
        call: Json = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "seen"})
    return written


def test_what_is_known_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def read(body: bytes) -> Any:
        sizes.append(len(body))
        return read_document(body)

    monkeypatch.setattr(prefix_module, "read_document", read)
    client = Client(CHAT.dialect())
    read_requests = [client.read(body, RequestHead("")) for body in growing()]
    assert client.known == len(read_requests) - 1
    assert max(sizes[1:]) < 400 < sizes[0]
    first, *_, last = [request.conversation for request in read_requests]
    assert all(one is other for one, other in zip(first.turns, last.turns, strict=False))
    assert first.tools is last.tools


def test_the_marks_of_the_reader_in_a_body_are_text_like_any_other() -> None:
    marks = [b"8152734069912460357", b"8152734069912460358"]
    written = [body.replace(b"seen", mark).replace(b"brief", mark) for body in growing() for mark in marks]
    read_alike(CHAT, written, RequestHead(""))


def test_a_second_field_of_the_same_name_wins() -> None:
    for more in (b'"messages":[{"role":"user","content":"x"}]', b'"messages":[8152734069912460357]', b'"tools":[]'):
        for body in growing(3):
            twice = body[:-1] + b"," + more + b"}"
            read_alike(CHAT, [body, twice, body, twice, twice], RequestHead(""))


def test_messages_are_found_in_their_own_field() -> None:
    copied = [b'{"metadata":{"messages":%b},%b' % (json.dumps(_tools(2)).encode(), body[1:]) for body in growing()]
    same = [b'{"metadata":%b,%b' % (body[body.index(b"[") : body.index(b',"tools"')], body[1:]) for body in growing()]
    read_alike(CHAT, [*copied, *same], RequestHead(""))


def with_fields(changes: list[dict[str, Json]]) -> list[bytes]:
    """The requests of an agent, each with these fields as well."""
    written = growing(len(changes))
    return [json.dumps({**json.loads(body), **more}).encode() for body, more in zip(written, changes, strict=True)]


def test_tools_that_one_request_does_not_offer_are_those_of_the_next_one() -> None:
    one: Json = {"type": "function", "function": {"name": "t0"}}
    allowed: Json = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [one]}}
    read_alike(CHAT, with_fields([{"tool_choice": allowed}, {}, {"tool_choice": allowed}, {}]), RequestHead(""))
    search: Json = {"type": "web_search", "context": "x" * 2000}
    read_alike(CHAT, with_fields([{"tools": [*_tools(9), search]}] * 4), RequestHead(""))  # type: ignore[misc]  # a list


def test_a_fault_of_the_tools_is_told_with_each_request() -> None:
    tools = json.loads(json.dumps(_tools(9)).replace('"t1"', '"no name of a function"'))
    written = with_fields([{"tools": tools}] * 4)
    assert CHAT.dialect().decode(read_document(written[0]), RequestHead("")).conversation.faults
    read_alike(CHAT, written, RequestHead(""))


RESPONSES: Final = next(case for case in CASES if str(case) == "openai_responses")
MESSAGES: Final = next(case for case in CASES if str(case) == "anthropic_messages")
SAID: Final[Json] = {"role": "user", "content": "Look."}
# Values that are equal to each other in Python, and are not the same JSON.
EQUAL: Final[list[Json]] = [1, 1.0, True, {"a": 1, "b": 2}, {"b": 2, "a": 1}]


def with_items(items: Callable[[Json], list[Json]], **fields: Json) -> list[bytes]:
    return [json.dumps({"model": "m", **fields, "input": [SAID, SAID, *items(value)]}).encode() for value in EQUAL]


def test_a_turn_of_several_messages_of_which_one_is_new_is_new() -> None:
    def answered(value: Json) -> list[Json]:
        call: Json = {"type": "function_call", "call_id": "c", "name": "t1", "arguments": "{}", "x": value}
        return [{"role": "assistant", "content": "Yes."}, call]

    result: Json = {"type": "function_call_output", "call_id": "c", "output": "seen"}
    read_alike(RESPONSES, with_items(answered), RequestHead(""))
    read_alike(RESPONSES, with_items(lambda value: [*answered(value), result, SAID]), RequestHead(""))
    # No turn has it, so that it stands in the source of the one before it.
    searched = with_items(lambda value: [{"type": "web_search_call", "id": "w", "x": value}])
    read_alike(RESPONSES, searched, RequestHead(""))


def test_tools_in_a_new_message_are_new() -> None:
    def found(value: Json) -> list[Json]:
        tool: Json = {"type": "function", "name": "t", "parameters": {"const": value}, "defer_loading": True}
        return [{"type": "tool_search_output", "call_id": "s", "execution": "client", "tools": [tool]}, SAID]

    tools: Json = [{"type": "function", "name": "u", "description": "x" * 2000}, {"type": "tool_search"}]
    read_alike(RESPONSES, with_items(found, tools=tools), RequestHead(""))


def test_turns_behind_a_system_prompt_are_those_of_the_earlier_request() -> None:
    def body(count: int, system: Json) -> bytes:
        said = [{"role": ("user", "assistant")[number % 2], "content": f"{number}"} for number in range(count)]
        return json.dumps({"model": "m", "max_tokens": 9, "messages": said, "system": system}).encode()

    written = [body(5, "Be brief."), body(7, "Be brief."), body(9, "Be long.")]
    prompts: list[Json] = [[{"type": "text", "text": "Be brief.", "cache_control": value}] for value in EQUAL]
    read_alike(MESSAGES, [*written, *[body(9, prompt) for prompt in prompts]], RequestHead(""))
    client = Client(MESSAGES.dialect())
    first, second, third = [client.read(one, RequestHead("")).conversation.turns for one in written]
    assert all(one is other for one, other in zip(first, second, strict=False))
    assert [one is other for one, other in zip(second, third, strict=False)] == [False] + [True] * 7


def test_an_id_that_is_derived_of_earlier_messages_is_derived_again() -> None:
    call: Json = {"role": "assistant", "content": None, "function_call": {"name": "t1", "arguments": "{}"}}
    said: list[Json] = [{"role": "user", "content": "Look."}]
    written = []
    for number in range(4):
        said = [*said, call]
        written.append(json.dumps({"model": "m", "messages": said}).encode())
        said = [*said, {"role": "function", "name": "t1", "content": f"seen {number}"}]
        written.append(json.dumps({"model": "m", "messages": said}).encode())
    read_alike(CHAT, written, RequestHead(""))
    # A later id of the client's own takes the one that was derived.
    first = json.loads(written[0])
    (derived,) = CHAT.dialect().decode(read_document(written[0]), RequestHead("")).conversation.turns[1].calls
    own: Json = {"id": derived.id, "type": "function", "function": {"name": "t2", "arguments": "{}"}}
    first["messages"].append({"role": "function", "name": "t1", "content": "seen"})
    known = json.dumps(first).encode()
    first["messages"].append({"role": "assistant", "content": None, "tool_calls": [own]})
    read_alike(CHAT, [written[0], known, json.dumps(first).encode()], RequestHead(""))


def test_half_a_character_is_told_with_each_request() -> None:
    read_alike(CHAT, [body.replace(b"Be brief.", b"Be brief. \\ud83d") for body in growing()], RequestHead(""))


def test_the_place_of_an_error_is_that_in_the_whole_body() -> None:
    *known, last = growing()
    broken = last[:-1] + b",}"
    with pytest.raises(GatewayError, match="byte"):
        read_document(broken)
    read_alike(CHAT, [*known, broken], RequestHead(""))


def test_ids_of_calls_are_those_of_the_turns_that_are_sent() -> None:
    client = Client(CHAT.dialect())
    *_, before, last = [client.read(body, RequestHead("")).conversation for body in growing()]
    plain = CHAT.dialect().decode(read_document(growing()[-1]), RequestHead("")).conversation
    id_prefix(before)
    # The limits of a model leave out the first turns.
    for begin in (0, 1, 2, 0):
        sent_turns, plain_turns = [msgspec.structs.replace(one, turns=one.turns[begin:]) for one in (last, plain)]
        assert id_prefix(sent_turns) == id_prefix(plain_turns)


def test_a_turn_is_encoded_for_each_backend_by_its_own_rules() -> None:
    client = Client(CHAT.dialect())
    for body in with_pictures(20)[-2:]:
        read = client.read(body, RequestHead("")).conversation
        plain = CHAT.dialect().decode(read_document(body), RequestHead("")).conversation
        for policy in (Policy(images="placeholder"), Policy(flatten=OTHER_LABELS), Policy()):
            for name, adapter in [*ADAPTERS.items(), *FORMATTED.items(), *reversed(ADAPTERS.items())]:
                expected = outcome(lambda: sent(adapter, plain, policy))  # noqa: B023  # called at once
                assert outcome(lambda: sent(adapter, read, policy)) == expected, name  # noqa: B023


@pytest.mark.parametrize("name", PROFILES)
def test_a_turn_is_encoded_by_the_profile_of_each_provider(name: str) -> None:
    client, policy = Client(CHAT.dialect()), Policy(profile=PROFILES[name])
    for body in with_pictures(12)[-4:]:
        read = client.read(body, RequestHead("")).conversation
        plain = CHAT.dialect().decode(read_document(body), RequestHead("")).conversation
        for adapter in (ADAPTERS["chat"], ADAPTERS["Messages"]):
            expected = outcome(lambda: sent(adapter, plain, policy))  # noqa: B023  # called at once
            assert outcome(lambda: sent(adapter, read, policy)) == expected  # noqa: B023


@pytest.mark.parametrize("name", FORMATTED)
def test_what_looks_like_a_call_is_escaped_by_the_tools_of_each_request(name: str) -> None:
    looks = FORMATS[name].render_call("t1", "{}")
    said: list[Json] = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": looks}]
    client, seen = Client(CHAT.dialect()), set()
    for number in range(6):
        said = [*said, {"role": "user", "content": f"{number}"}]
        body = json.dumps({"model": "m", "messages": said, "tools": _tools(9 if number % 2 else 0)}).encode()
        read = client.read(body, RequestHead("")).conversation
        plain = CHAT.dialect().decode(read_document(body), RequestHead("")).conversation
        expected = outcome(lambda: sent(FORMATTED[name], plain, Policy()))  # noqa: B023  # called at once
        assert outcome(lambda: sent(FORMATTED[name], read, Policy())) == expected  # noqa: B023
        seen.add("CALL_MARK_ESCAPED" in expected)
    assert seen == {False, True}
    assert client.known == 5


def test_the_values_of_earlier_requests_stay_as_they_were() -> None:
    client = Client(CHAT.dialect())
    requests_read = []
    for body in growing():
        request = client.read(body, RequestHead(""))
        requests_read.append((request, repr(request)))
        for adapter in ADAPTERS.values():
            Exchange(adapter, request.conversation, Policy(), label="openai_chat:host:K")
    assert all(repr(request) == before for request, before in requests_read)
    assert all(msgspec.json.encode(msgspec.to_builtins(request.conversation.params)) for request, _ in requests_read)


def with_pictures(count: int) -> list[bytes]:
    """The requests of an agent whose results are followed by a picture now and then."""
    picture: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    shown: Json = {"role": "user", "content": [{"type": "text", "text": "It shows this."}, picture]}
    written = []
    for body in growing(count):
        request = json.loads(body)
        if len(request["messages"]) > 6:
            request["messages"].insert(6, shown)
        written.append(json.dumps(request).encode())
    return written


class Interrupted:
    """A digest in whose work another request of the conversation is served: an update of many bytes lets other threads
    go on."""

    def __init__(self, digest: Any, serve: Callable[[], object]) -> None:
        self._digest = digest
        self._serve = serve

    def copy(self) -> "Interrupted":
        return Interrupted(self._digest.copy(), self._serve)

    def update(self, data: bytes) -> None:
        self._serve()
        self._digest.update(data)

    def hexdigest(self) -> str:
        return str(self._digest.hexdigest())


def test_what_another_thread_has_not_finished_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(CHAT.dialect())
    first, second = [client.read(body, RequestHead("")).conversation for body in growing(2)]
    plain = CHAT.dialect().decode(read_document(growing(2)[1]), RequestHead("")).conversation
    expected = id_prefix(plain)
    inner: list[str] = []

    def serve() -> None:
        if not inner:
            inner.append("")
            inner[0] = id_prefix(second)

    monkeypatch.setattr(format_module, "_BEGUN", Interrupted(format_module._BEGUN, serve))
    assert id_prefix(first) != expected
    assert inner == [expected]
    assert id_prefix(second) == expected


# Each case takes seconds.
@sample(lambda wire: wire == "chat")
@pytest.mark.parametrize("wire", WIRES)
def test_what_is_no_longer_kept_takes_no_memory(wire: str) -> None:
    def serve() -> None:
        client = Client(CHAT.dialect())
        for body in with_pictures(40)[-3:]:
            sent(ADAPTERS[wire], client.read(body, RequestHead("")).conversation, Policy(max_tool_results=3))

    serve()
    gc.collect()
    tracemalloc.start()
    try:
        serve()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            serve()
        gc.collect()
        # A turn that held itself would never be freed: it is not looked at by the garbage collector.
        assert tracemalloc.get_traced_memory()[0] - before < 65_536
    finally:
        tracemalloc.stop()


def _call(number: int) -> Json:
    return {"id": f"c{number}", "type": "function", "function": {"name": "t1", "arguments": "{}"}}


_PICTURE: Final[Json] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
# Messages of which much more is derived than they are long.
SMALL: Final[dict[str, Any]] = {
    "texts": [{"role": ("user", "assistant")[number % 2], "content": "a"} for number in range(2000)],
    "calls": [
        {"role": "assistant", "content": None, "tool_calls": [_call(number) for number in range(1000)]},
        *[{"role": "tool", "tool_call_id": f"c{number}", "content": "a"} for number in range(1000)],
    ],
    "pictures": [{"role": "user", "content": [_PICTURE] * 20}] * 60,
}


@pytest.mark.parametrize("wire", ["Messages", "text"])
@pytest.mark.parametrize("shape", SMALL)
def test_the_memory_of_what_is_derived_is_counted(shape: str, wire: str) -> None:
    policy = Policy(images="placeholder", max_history_messages=None, max_tool_results=2)
    body = json.dumps({"model": "m", "messages": [SAID, *SMALL[shape]]}).encode()

    def serve() -> Prefix:
        reading = read_whole("messages", body)
        request = reading.settled(CHAT.dialect().decode(reading.document, RequestHead("")))
        prefix = Prefix(reading, request)
        sent(ADAPTERS[wire], request.conversation, policy)
        return prefix

    serve()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        prefix = serve()
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken <= prefix.size <= 3 * taken


# How many of the calls of a request, of Python's and of C's functions, its next one needs. Where one turn with a
# picture, or without a change, is made anew each time, it is more than this.
SHARES: Final = {"Messages": 0.72, "text": 0.68, "Warp": 0.76}


@pytest.mark.parametrize("wire", SHARES)
def test_what_is_derived_of_known_turns_is_not_made_again(wire: str) -> None:
    client, adapter = Client(CHAT.dialect()), ADAPTERS[wire]
    *before, last = with_pictures(40)
    for body in before[-3:]:
        sent(adapter, client.read(body, RequestHead("")).conversation, Policy())
    known = client.read(last, RequestHead("")).conversation
    plain = CHAT.dialect().decode(read_document(last), RequestHead("")).conversation
    spent = [calls(partial(Exchange, adapter, one, Policy(), label="openai_chat:host:K")) for one in (known, plain)]
    assert spent[0] <= SHARES[wire] * spent[1], spent[0] / spent[1]
