"""The half of the conformance kit that looks at what an adapter sends."""

import copy
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from hypothesis import given, settings

from gateway.adapter import BackendRequest
from gateway.conversation.prepare import prepare
from gateway.errors import InvalidRequest
from gateway.testing.case import Case
from gateway.testing.layering import ADAPTER, Rule, broken_imports
from gateway.testing.strategies import conversations
from gateway.types import Conversation, File, Image, Text, ToolCall, ToolResult, ToolSpec, Turn

# One failure at a time, and none remembered: the kit also runs outside a project's own hypothesis settings.
LAW: Final = settings(max_examples=25, deadline=None, database=None, report_multiple_bugs=False)

# What the server adds to every request, from settings.json or by itself.
CREDENTIALS: Final = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"})
TRANSPORT: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})

# One of each kind of part that not every backend takes, and what shows that it was sent.
PARTS: Final[tuple[tuple[Image | File, bytes], ...]] = (
    (Image("https://host/imagemarker.png"), b"imagemarker"),
    (File("file", {"type": "file", "file": {"file_id": "filemarker"}}), b"filemarker"),
)

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")
_HEADER_NAME: Final = re.compile(r"[a-z0-9-]+")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")
_PATH: Final = re.compile(r"(/(?!/)[\x21-\x7e]*)?")


def options_are_strict(case: Case) -> None:
    """An empty entry of settings.json is enough or names what is missing; a misspelt key cannot pass."""
    config = case.adapter.Options.__struct_config__
    assert config.frozen, f"{case.adapter.Options.__name__} is not frozen"
    assert config.forbid_unknown_fields, f"{case.adapter.Options.__name__} accepts unknown fields"
    assert not msgspec.structs.fields(case.adapter.Options) or inspect.getdoc(case.adapter.Options)
    for field in msgspec.structs.fields(case.adapter.Options):
        assert not field.required or field.name in case.options, f"the option {field.name} has no default"
    case.build()


def imports_only_the_contract(case: Case) -> None:
    """The adapter's module opens no sockets, keeps no log and knows neither the server nor a client dialect."""
    module = inspect.getmodule(case.adapter)
    assert module is not None and module.__file__ is not None
    rule = Rule(module.__name__.rpartition(".")[0] or module.__name__, ADAPTER, others=None)
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert broken_imports(module.__name__, source, [rule]) == []
    clients = {"httpx", "aiohttp", "requests", "urllib3", "httpcore", "fastapi", "starlette", "grpc", "openai"}
    for client in clients:
        assert not re.search(rf"^\s*(import|from) {client}\b", source, re.M), f"{module.__name__} imports {client}"


def encoding_is_deterministic(case: Case) -> None:
    """The same conversation is the same request, from the same adapter and from another one."""
    adapter, other = case.build(), case.build()
    requests = [made.encode(case.prepared(), case.policy) for made in (adapter, adapter, other)]
    assert requests[0] == requests[1] == requests[2]


def encoding_changes_nothing(case: Case) -> None:
    """The conversation is left as it was, also deep inside its JSON values."""
    conversation = case.prepared()
    before = copy.deepcopy(conversation)
    case.build().encode(conversation, case.policy)
    assert conversation == before


def request_is_well_formed(case: Case) -> None:
    """A relative path, plain headers, media types; no credential and nothing that the transport adds itself."""
    _check_request(case.build().encode(case.prepared(), case.policy))


def request_is_readable(case: Case) -> None:
    """Whoever asks what is sent can be shown it as JSON."""
    adapter = case.build()
    body = adapter.encode(case.prepared(), case.policy).body
    assert msgspec.json.encode(adapter.readable(body)) not in (b"null", b'""'), "nothing to read"


def nothing_is_dropped_in_silence(case: Case) -> None:
    """Every word of a plain history is in the request, or a notice says why it is not."""
    adapter = case.build()
    conversation = _marked(tools=adapter.capabilities.tools)
    prepared = prepare(conversation, case.policy)
    request = adapter.encode(prepared.conversation, case.policy)
    said = [word for turn in conversation.turns for word in re.findall(r"[a-z]+marker", str(turn))]
    missing = [word for word in said if word.encode() not in request.body]
    told = {notice.action for notice in (*prepared.notices, *request.notices)} - {"seen", "added"}
    assert not missing or told, f"{missing} were dropped without a notice"


def parts_are_not_dropped_in_silence(case: Case) -> None:
    """An image or a file, in a question or in a tool's result, is sent, refused, or told of in a notice."""
    adapter = case.build()
    for part, word in PARTS:
        asked = Turn("user", (Text("What is this?"), part), index=0)
        histories: list[tuple[Turn, ...]] = [(asked,)]
        if adapter.capabilities.tools:
            call = Turn("assistant", (ToolCall("k", "look", "{}"),), index=1)
            histories.append((asked, call, Turn("tool", (ToolResult("k", (Text("This."), part)),), index=2)))
        for turns in histories:
            prepared = prepare(Conversation(turns, model="model"), case.policy)
            try:
                request = adapter.encode(prepared.conversation, case.policy)
            except InvalidRequest:
                continue
            told = {notice.action for notice in (*prepared.notices, *request.notices)} - {"seen", "added"}
            assert word in request.body or told, f"a part of kind {word!r} was dropped without a notice"


def any_history_can_be_sent(case: Case) -> None:
    """Hostile text in any valid history is encoded or refused, twice alike, never a crash."""
    adapter = case.build()

    @LAW
    @given(conversations(tools=adapter.capabilities.tools))
    def law(conversation: Conversation) -> None:
        prepared = prepare(conversation, case.policy).conversation
        try:
            request = adapter.encode(prepared, case.policy)
        except InvalidRequest:
            return
        _check_request(request)
        assert request == adapter.encode(prepared, case.policy)

    law()


def _check_request(request: BackendRequest) -> None:
    assert request.method in ("POST", "GET", "PUT"), f"the method {request.method!r}"
    assert _PATH.fullmatch(request.path) and ".." not in request.path, f"the path {request.path!r} is not relative"
    for name, value in request.headers.items():
        assert _HEADER_NAME.fullmatch(name), f"the header name {name!r} is not a lower-case token"
        assert _HEADER_VALUE.fullmatch(value), f"the value of {name} has characters that a header cannot carry"
    assert not CREDENTIALS & set(request.headers), "credentials come from settings.json, never from an adapter"
    assert not TRANSPORT & set(request.headers), "the transport sets these headers itself"
    assert not request.body or "content-type" in request.headers, "a body without a content-type"
    assert request.accepts, "no media type is accepted"
    for media_type in request.accepts:
        assert _MEDIA_TYPE.fullmatch(media_type), f"{media_type!r} is not a bare lower-case media type"


def _marked(tools: bool) -> Conversation:
    """A short history in which every text is a word that occurs once. The adapter sees it as a client wrote it."""
    turns = [
        Turn("system", (Text("systemmarker"),)),
        Turn("user", (Text("firstmarker"),)),
        Turn("assistant", (Text("answermarker"),)),
        Turn("user", (Text("secondmarker"),)),
    ]
    if tools:
        turns += [
            Turn("assistant", (ToolCall("callidmarker", "toolmarker", '{"key": "argumentmarker"}'),)),
            Turn("tool", (ToolResult("callidmarker", (Text("resultmarker"),)),)),
        ]
    numbered = tuple(msgspec.structs.replace(turn, index=index) for index, turn in enumerate(turns))
    offered = (ToolSpec("toolmarker", "Looks it up."),) if tools else ()
    return Conversation(numbered, offered, model="model", stream=True)


CHECKS: Final[tuple[Callable[[Case], None], ...]] = (
    options_are_strict,
    imports_only_the_contract,
    encoding_is_deterministic,
    encoding_changes_nothing,
    request_is_well_formed,
    request_is_readable,
    nothing_is_dropped_in_silence,
    parts_are_not_dropped_in_silence,
    any_history_can_be_sent,
)
