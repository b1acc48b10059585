"""Finds the names that stay in a redacted request: passes and providers act on them."""

from collections.abc import Mapping
from contextlib import suppress

from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import GatewayError
from gateway.dialects.document import read_document
from gateway.recording.recording import Interaction
from gateway.recording.redact.words import words_of
from gateway.recording.route import request_head
from gateway.registry import load_dialect


def kept_words(interaction: Interaction) -> frozenset[str]:
    """Returns the words that stay: names of fields and of tools, stop sequences, the labels of transcripts."""
    names: set[str] = set()
    with suppress(GatewayError):
        document = read_document(interaction.body or b"")
        _add_fields(document.fields, names)
        request = load_dialect(interaction.request.dialect).decode(document, request_head(interaction))
        names |= {tool.name for tool in request.conversation.tools} | set(request.conversation.sampling.stop)
    if interaction.route is not None:
        names |= _texts(interaction.route.policy)
        names |= {interaction.route.model, interaction.route.name}
    return frozenset(word for name in names for word in words_of(name))


def _add_fields(value: Json, names: set[str]) -> None:
    """Adds the names of all fields."""
    if isinstance(value, dict):
        names.update(value)
        value = [*value.values()]
    if isinstance(value, list):
        for below in value:
            _add_fields(below, names)


def _texts(value: "Json | JsonObject") -> set[str]:
    """Returns all names and texts of a policy."""
    if isinstance(value, Mapping):
        return set(value).union(*(_texts(below) for below in value.values()))
    if isinstance(value, list):
        return set[str]().union(*map(_texts, value))
    return {value} if isinstance(value, str) else set()
