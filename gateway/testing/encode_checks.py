"""Checks how an adapter encodes: options, imports, determinism, and the form of what it sends."""

import copy
import inspect
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
from hypothesis import given, settings

from gateway.adapter import SigningAdapter, UnsignedRequest
from gateway.core.conversation import Conversation
from gateway.core.errors import InvalidRequest
from gateway.history.prepare import prepare
from gateway.settings.presets import PRESET
from gateway.testing.adapter_case import Case
from gateway.testing.layering import ADAPTER, ImportRule, broken_imports
from gateway.testing.request_form import TRANSPORT, check_form, check_header_form
from gateway.testing.strategies import conversations

_NOW: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
_LATER: Final = _NOW + timedelta(hours=30)
# Each run reports one failure and stores none, because the kit also runs outside a project's own hypothesis settings.
LAW: Final = settings(max_examples=25, deadline=None, database=None, report_multiple_bugs=False)


def options_are_strict(case: Case) -> None:
    """An empty entry of settings.json is valid or its error names what is missing; a misspelt key is rejected. A preset
    has every key."""
    config = case.adapter.Options.__struct_config__
    assert config.frozen, f"{case.adapter.Options.__name__} is not frozen"
    assert config.forbid_unknown_fields, f"{case.adapter.Options.__name__} accepts unknown fields"
    assert not msgspec.structs.fields(case.adapter.Options) or inspect.getdoc(case.adapter.Options)
    for field in msgspec.structs.fields(case.adapter.Options):
        given_or_default = not field.required or not {field.name, PRESET}.isdisjoint(case.options)
        assert given_or_default, f"the option {field.name} has no default"
    case.build()


def imports_only_the_contract(case: Case) -> None:
    """The adapter's module opens no sockets, writes no log and imports no server, and no wire but its own."""
    module = inspect.getmodule(case.adapter)
    assert module is not None and module.__file__ is not None
    rule = ImportRule(module.__name__.rpartition(".")[0] or module.__name__, ADAPTER, others=None)
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert broken_imports(module.__name__, source, [rule]) == []
    clients = {"httpx", "aiohttp", "requests", "urllib3", "httpcore", "fastapi", "starlette", "grpc", "openai"}
    for client in clients:
        assert not re.search(rf"^\s*(import|from) {client}\b", source, re.M), f"{module.__name__} imports {client}"


def encoding_is_deterministic(case: Case) -> None:
    """The same conversation gives the same request, from the same adapter and from another instance."""
    adapter, other = case.build(), case.build()
    requests = [made.encode(case.prepared(), case.policy) for made in (adapter, adapter, other)]
    assert requests[0] == requests[1] == requests[2]


def encoding_changes_nothing(case: Case) -> None:
    """The conversation is unchanged after the call, including its nested JSON values."""
    conversation = case.prepared()
    before = copy.deepcopy(conversation)
    case.shared.encode(conversation, case.policy)
    assert conversation == before


def request_is_well_formed(case: Case) -> None:
    """The request has a relative path, plain headers and media types; it has no credential and no header that the
    transport adds."""
    check_form(case.shared.encode(case.prepared(), case.policy))


def request_is_readable(case: Case) -> None:
    """The adapter can describe its request as JSON."""
    adapter = case.shared
    body = adapter.encode(case.prepared(), case.policy).body
    assert msgspec.json.encode(adapter.describe(body)) not in (b"null", b'""'), "nothing to read"


def any_history_can_be_sent(case: Case) -> None:
    """Hostile text in any valid history is encoded or rejected, deterministically and without a crash."""
    adapter = case.shared

    @LAW
    @given(conversations(tools=adapter.capabilities.tools))
    def law(conversation: Conversation) -> None:
        prepared = prepare(conversation, case.policy).conversation
        try:
            request = adapter.encode(prepared, case.policy)
        except InvalidRequest:
            return
        check_form(request)
        assert request == adapter.encode(prepared, case.policy)

    law()


def signing_is_deterministic(case: Case) -> None:
    """An adapter that signs gives the same headers for the same request, key and time. They can be sent, replace none
    of the request's own, and show nothing of the key's first part."""
    adapter, other = case.build(), case.build()
    if not isinstance(adapter, SigningAdapter) or not isinstance(other, SigningAdapter):
        return
    request = adapter.encode(case.prepared(), case.policy)
    path, _, query = request.path.partition("?")
    headers = {"host": "backend.example", "user-agent": "kit", **request.headers}
    unsigned = UnsignedRequest(request.method, path or "/", query, dict(headers), request.body)
    added = [dict(signer.sign(unsigned, case.key, _NOW)) for signer in (adapter, adapter, other)]
    assert added[0] == added[1] == added[2]
    assert unsigned.headers == headers, "signing changed the request's headers"
    check_header_form(added[0])
    assert not headers.keys() & added[0].keys(), "the request has a header of the signature already"
    assert not TRANSPORT & added[0].keys(), "the transport sets these headers itself"
    assert case.key.partition(":")[0] not in str(added[0]), "the key is sent"
    assert added[0] != dict(adapter.sign(unsigned, case.key, _LATER)), "the signature says no time"


CHECKS: Final[tuple[Callable[[Case], None], ...]] = (
    options_are_strict,
    imports_only_the_contract,
    encoding_is_deterministic,
    encoding_changes_nothing,
    request_is_well_formed,
    request_is_readable,
    any_history_can_be_sent,
    signing_is_deterministic,
)
