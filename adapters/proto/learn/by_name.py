"""Guesses the request of a service of which nothing was recorded, by the names of its fields, so that it can be asked.
Every part of it is told as assumed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from adapters.proto.backend.carriers import find_carrier
from adapters.proto.backend.request_template import RequestTemplate
from adapters.proto.backend.schema import Field, MessageType, Method, Schema
from adapters.proto.backend.template_keys import BY, EACH
from adapters.proto.backend.template_names import STRUCTURED, TEXT, Scope
from adapters.proto.learn.exchange import RecordedExchange
from adapters.proto.learn.learned import Doubt
from adapters.proto.learn.request_search import request_forms
from adapters.text.backend.request_template import names_in
from gateway.core.conversation import Json
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import OptionError, SettingsError

_DEPTH: Final = 4
# The names of a template, and parts of the names of fields that take their values, the best first.
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "$model": ("model", "engine"),
    "$max_tokens": ("max_tokens", "max_new_tokens", "max_output_tokens", "most_tokens", "tokens", "limit", "n_predict"),
    "$temperature": ("temperature", "heat"),
    "$top_p": ("top_p", "topp"),
    "$seed": ("seed",),
    "$stop": ("stop_sequences", "stop_words", "stopprompts", "stop", "until"),
}
_PROMPTS: Final = ("prompt", "text", "query", "input", "question", "instruction", "message", "content")
_TEXTS: Final = ("content", "text", "message", "body")
_ROLES: Final = ("role", "author", "speaker")
# Parts of the names of the values of an enum of roles.
_ROLE_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "system": ("system", "developer", "rules", "instruction"),
    "user": ("user", "human", "person", "client"),
    "assistant": ("assistant", "model", "bot", "ai"),
}
_METHODS: Final = ("chat", "complet", "generate", "answer", "ask", "say", "talk", "predict", "infer", "stream")


class GuessedRequest(msgspec.Struct, frozen=True):
    """A method and a template of its request. `limits`: the template sends a limit of the answer."""

    method: str
    template: Mapping[str, Json]
    doubts: tuple[Doubt, ...]
    limits: bool


def guess_request(schema: DescriptorSet, method: str | None) -> GuessedRequest:
    """Returns the method that is most likely that of a conversation, or the given one, and its template. Raises
    OptionError for a method that does not exist, and SettingsError where no field is named like one of a
    conversation."""
    loaded = Schema(schema)
    written = loaded.methods() if method is None else (method,)
    found = [guess for name in written if (guess := _guess(name, loaded.method(name))) is not None]
    if not found:
        raise SettingsError("no method of the schema has a field that is named like a prompt or a list of messages")
    return max(found, key=lambda guess: _rank(guess, loaded.method(guess.method)))


def _rank(guess: GuessedRequest, method: Method) -> tuple[int, bool, int]:
    last = guess.method.rpartition("/")[2].lower()
    return sum(word in last for word in _METHODS), method.streams_responses, len({*names_in(dict(guess.template))})


def _guess(name: str, method: Method) -> GuessedRequest | None:
    if method.streams_requests:
        return None
    held = _conversation(method.request, ())
    if held is None:
        return None
    way, template, scope = held
    whole = _placed(way, template)
    for wanted, parts in _NAMES.items():
        for place, field in _ranked(method.request, parts):
            added = _merged(whole, _placed(place, wanted))
            if added is not None and _fits({field.name: wanted}, field.containing_type, scope):
                whole = added
                break
    doubts = tuple(_doubts(whole, "request"))
    return GuessedRequest(name, whole, doubts, "$max_tokens" in {*names_in(whole)})


def _doubts(template: Json, place: str) -> Iterator[Doubt]:
    """Yields a doubt for each field that holds a name, by which it was chosen."""
    if isinstance(template, dict) and EACH not in template:
        for key, value in template.items():
            yield from _doubts(value, f"{place}.{key}")
    else:
        names = " ".join(dict.fromkeys(name for name in names_in(template) if name not in ("$role",)))
        yield Doubt("assumed", place, f"{names}, by the name of the field")


def _conversation(kind: MessageType, way: tuple[str, ...]) -> tuple[tuple[str, ...], Json, Scope] | None:
    """Returns the way to the field that holds the conversation, its template, and the names that it may use."""
    for field in kind.fields:
        if field.is_repeated and field.message_type is not None and (turns := _turns(field.message_type)) is not None:
            return (*way, field.name), turns, STRUCTURED
    for part in _PROMPTS:
        for field in kind.fields:
            if field.type == field.TYPE_STRING and not field.is_repeated and part in field.name.lower():
                return (*way, field.name), "$prompt", TEXT
    if len(way) < _DEPTH:
        for field in kind.fields:
            if field.message_type is not None and not field.is_repeated:
                found = _conversation(field.message_type, (*way, field.name))
                if found is not None:
                    return found
    return None


def _turns(kind: MessageType) -> dict[str, Json] | None:
    """Returns the template of turns with a role and a text."""
    role = next((field for field in kind.fields if any(name in field.name.lower() for name in _ROLES)), None)
    text = _text_of(kind)
    if role is None or role.is_repeated or text is None:
        return None
    turns: dict[str, Json] = {EACH: "$turns", BY: "$role"}
    for word, parts in _ROLE_WORDS.items():
        written = _role(role, word, parts)
        if written is None:
            return None
        turns[word] = {role.name: written, **text}
    return turns


def _role(field: Field, word: str, parts: Sequence[str]) -> str | None:
    if field.type == field.TYPE_STRING:
        return word
    if field.enum_type is None:
        return None
    names = [str(value.name) for value in field.enum_type.values]
    return next((name for part in parts for name in names if part in name.lower()), None)


def _text_of(kind: MessageType) -> dict[str, Json] | None:
    for part in _TEXTS:
        for field in kind.fields:
            if field.type == field.TYPE_STRING and not field.is_repeated and part in field.name.lower():
                return {field.name: "$text"}
    for field in kind.fields:
        if field.is_repeated and field.message_type is not None:
            inner = next(
                (one for one in field.message_type.fields if one.type == one.TYPE_STRING and one.name in _TEXTS), None
            )
            if inner is not None:
                return {field.name: [{inner.name: "$text"}]}
    return None


def _ranked(kind: MessageType, parts: Sequence[str]) -> list[tuple[tuple[str, ...], Field]]:
    """Returns the fields whose names have one of these parts, by the parts, those that are not nested first."""
    fields = list(_fields(kind, ()))
    return [pair for part in parts for pair in fields if part in pair[1].name.lower()]


def _fields(kind: MessageType, way: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    yield from (((*way, field.name), field) for field in kind.fields)
    if len(way) < _DEPTH:
        for field in kind.fields:
            if field.message_type is not None and not field.is_repeated:
                yield from _fields(field.message_type, (*way, field.name))


def _placed(way: Sequence[str], template: Json) -> dict[str, Json]:
    for name in reversed(way):
        template = {name: template}
    assert isinstance(template, dict), "a way has a field at least"
    return template


def _merged(whole: Mapping[str, Json], more: Mapping[str, Json]) -> dict[str, Json] | None:
    """Returns both templates as one; None: a field would have two values."""
    made = dict(whole)
    for key, value in more.items():
        before = made.get(key)
        if before is None:
            made[key] = value
            continue
        if not isinstance(before, dict) or not isinstance(value, dict) or EACH in before:
            return None
        below = _merged(before, value)
        if below is None:
            return None
        made[key] = below
    return made


def _fits(template: Json, kind: MessageType, scope: Scope) -> bool:
    try:
        RequestTemplate(template, kind, scope)
    except OptionError:
        return False
    return True


def guessed_body(schema: DescriptorSet, carrier: str, guess: GuessedRequest, exchange: RecordedExchange) -> bytes:
    """Returns the body of a request with a guessed template. Raises InvalidRequest."""
    method = Schema(schema).method(guess.method)
    names = {*names_in(dict(guess.template))}
    form = next(form for form in request_forms(method, [exchange]) if form.needed & names)
    template = RequestTemplate(dict(guess.template), method.request, form.scope)
    message: Any = template.render(form.values[0], [])
    return find_carrier(carrier, method).write(message.SerializeToString(deterministic=True))


def request_headers(schema: DescriptorSet, carrier: str, method: str) -> tuple[str, Mapping[str, str]]:
    """Returns the path and the headers of a request to a method."""
    found = Schema(schema).method(method)
    return found.path, find_carrier(carrier, found).headers
