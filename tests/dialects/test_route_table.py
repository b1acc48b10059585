"""Which dialect answers which method and path."""

from collections.abc import Sequence
from typing import ClassVar

import pytest

from adapters.openai_chat.client.dialect import OpenAIChatDialect
from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.core.errors import SettingsError
from gateway.dialect import RequestHead, RequestMark, Route, RouteKind
from gateway.dialects.document import Document
from gateway.dialects.route_table import RouteTable


class Verbs(OpenAIChatDialect):
    """A dialect with the model in its path, before a verb."""

    name: ClassVar[str] = "verbs"
    routes: ClassVar[tuple[Route, ...]] = (
        Route("POST", "/beta/models/{name}:generate", "generate"),
        Route("GET", "/beta/models", "models"),
        Route("GET", "/beta/models/{name}", "model"),
    )


class Double(OpenAIChatDialect):
    name: ClassVar[str] = "double"
    routes: ClassVar[tuple[Route, ...]] = (Route("GET", "/v1/models/{model}", "model"),)


@pytest.mark.parametrize(
    ("method", "path", "name", "kind"),
    [
        ("POST", "/v1/chat/completions", "openai_chat", "generate"),
        ("GET", "/v1/models", "openai_chat", "models"),
        ("GET", "/v1/models/a/b:7b", "openai_chat", "model"),
        ("GET", "/models/a", "openai_chat", "model"),
        ("POST", "/beta/models/a/b:7b:generate", "verbs", "generate"),
        ("GET", "/beta/models", "verbs", "models"),
        ("GET", "/beta/models/x\ny", "verbs", "model"),
        ("DELETE", "/beta/models", "verbs", None),
        ("DELETE", "/beta/models/a", "verbs", None),
        ("GET", "/beta/models/a:generate", "verbs", "model"),
        ("HEAD", "/beta/models/a:generate", "verbs", None),
        ("POST", "/beta/models/:generate", "verbs", None),
        ("POST", "/beta/models/", "verbs", None),
        ("GET", "/v1/chat/completions", "openai_chat", None),
        ("GET", "/beta", "verbs", None),
        ("GET", "/beta/models/a/b/c/d", "verbs", "model"),
        ("POST", "/beta/files/a/b", "verbs", None),
        ("POST", "/v1/files", "openai_chat", None),
        ("POST", "/gamma/models", "openai_chat", None),
        ("OPTIONS", "*", "openai_chat", None),
        ("GET", "/", "openai_chat", None),
    ],
)
def test_a_request_is_answered_in_the_dialect_of_its_route(
    method: str, path: str, name: str, kind: RouteKind | None
) -> None:
    found = RouteTable([OpenAIChatDialect(), Verbs()]).find(method, path)
    assert (found.dialect.name, found.kind) == (name, kind)


def test_two_dialects_with_the_same_route_are_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"'openai_chat' and 'double' both serve GET /v1/models/\{model\}"):
        RouteTable([OpenAIChatDialect(), Double()])


class Marked(OpenAIChatDialect):
    """A dialect whose lists of models have the paths of another one."""

    name: ClassVar[str] = "marked"
    routes: ClassVar[tuple[Route, ...]] = (
        Route("GET", "/v1/models", "models", mark=RequestMark(header=b"x-version")),
        Route("GET", "/v1/models/{id}", "model", mark=RequestMark(parameter="version")),
    )


@pytest.mark.parametrize("dialects", [[OpenAIChatDialect(), Marked()], [Marked(), OpenAIChatDialect()]])
@pytest.mark.parametrize(
    ("head", "name"),
    [
        (RequestHead("/v1/models"), "openai_chat"),
        (RequestHead("/v1/models", b"version=1"), "openai_chat"),
        (RequestHead("/v1/models", headers={b"x-version": b""}), "marked"),
        (RequestHead("/v1/models/a"), "openai_chat"),
        (RequestHead("/v1/models/a", headers={b"x-version": b"1"}), "openai_chat"),
        (RequestHead("/v1/models/a", b"x=1&version="), "marked"),
    ],
)
def test_a_mark_tells_two_dialects_on_one_path_apart(
    dialects: list[OpenAIChatDialect], head: RequestHead, name: str
) -> None:
    assert RouteTable(dialects).find("GET", head.path).select(head).dialect.name == name


class Counted(OpenAIChatDialect):
    name: ClassVar[str] = "counted"
    routes: ClassVar[tuple[Route, ...]] = (Route("POST", "/count", "count"),)


class Kept(OpenAIChatDialect):
    name: ClassVar[str] = "kept"
    routes: ClassVar[tuple[Route, ...]] = (Route("GET", "/kept/{id}", "stored"),)

    def missing_entries(self, document: Document) -> Sequence[str]:
        return ()


class Spoken(OpenAIChatDialect):
    routes: ClassVar[tuple[Route, ...]] = (Route("GET", "/spoken", "refused", websocket=True),)


class Counting(Counted):
    def encode_count(self, tokens: int) -> bytes:
        return b"%d" % tokens


def test_what_a_dialect_has_beside_the_contract_is_read_once() -> None:
    table = RouteTable([OpenAIChatDialect(), Counting(), OpenAIResponsesDialect()])
    chat, counting, responses = (table.extensions[dialect.name] for dialect in table.dialects)
    assert chat == (None, None, None, None)
    assert counting.counting is not None and counting.counting.encode_count(3) == b"3" and counting.stored is None
    assert responses == (table.dialects[2],) * 4


@pytest.mark.parametrize(
    ("dialect", "lacks"), [(Counted, "encode_count"), (Kept, "stored_query"), (Spoken, "read_event")]
)
def test_a_route_that_a_dialect_cannot_answer_is_refused(dialect: type[OpenAIChatDialect], lacks: str) -> None:
    with pytest.raises(SettingsError, match=rf"the dialect '{dialect.name}' has a route .*{lacks}"):
        RouteTable([dialect()])
