"""Reads, makes and labels the opaque state of a provider: a signature, encrypted reasoning.

In `extra` of a block it stands below the provider's name, so that it reaches no other provider:
`{"extra_content": {"google": {"thought_signature": "..."}}}` (the form of Google's OpenAI compatibility).

Two backends may be of one provider and not know each other's state. A label before the state therefore says which
backend made it: set on the way to the client, taken off on the way back. Its form fits every wire: letters and digits,
24 of them, are base64 in both alphabets (RFC 4648, sections 4 and 5), and since they are whole groups of four, bytes
that a client decodes and encodes again begin with the same characters (google-genai keeps `thoughtSignature` as bytes).

A message of chat completions keeps all states of its reasoning in one object, so that several pieces of it are a list
there: `{"anthropic": {"thoughts": [{"signature": "..."}, ...]}}`. A reasoning item of Responses has one text for its
state, which then says whose it is: the label, `anthropic:signature:`, the state.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from gateway.core.conversation import EMPTY, Json, JsonObject

STATE_FIELD: Final = "extra_content"
# The fields below a provider's name that hold a state; what stands beside them says which one it is.
OPAQUE_FIELDS: Final = ("signature", "data", "thought_signature", "encrypted_content", "opaque")
# The types of objects that say nothing without their state, and those of items that stand for a part of the history.
REASONING_TYPES: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
COMPACTION_TYPES: Final = frozenset({"compaction", "compaction_summary", "context_compaction"})
# The field with the state of an object of a wire, by the object's type; a part of Gemini has no type.
_FIELD_OF_TYPE: Final[Mapping[Json, str]] = {
    "thinking": "signature",
    "redacted_thinking": "data",
    "reasoning": "encrypted_content",
    **dict.fromkeys((*COMPACTION_TYPES, "compaction_delta"), "encrypted_content"),
}
_FIELD_OF_PART: Final = "thoughtSignature"
# An object without any of these fields has no state.
STATE_FIELDS: Final = frozenset({STATE_FIELD, _FIELD_OF_PART, *_FIELD_OF_TYPE.values()})

# What every label begins with, and what the gateway seals itself.
LABEL_MARK: Final = "Dragoman"
_DIGEST_BYTES: Final = 8
# The form of every label, as a regular expression.
LABEL: Final = rf"{LABEL_MARK}[0-9a-f]{{{2 * _DIGEST_BYTES}}}"
_match_label: Final = re.compile(LABEL).match

# The list with the states of several pieces of reasoning, below a provider's name.
_SEVERAL: Final = "thoughts"
_SIGNED: Final = frozenset({"signature", "data"})
# No provider's own text has this form: OpenAI's is base64.
_match_named: Final = re.compile(rf"({LABEL})?([a-z0-9_-]+):({'|'.join(OPAQUE_FIELDS)}):", re.ASCII).match

# Takes a state that is not empty; None: the state is left out.
Change: TypeAlias = Callable[[str], str | None]


def provider_state(extra: JsonObject, provider: str) -> JsonObject:
    """Returns the state of this provider; empty where there is none."""
    if not extra:
        return EMPTY
    states = extra.get(STATE_FIELD)
    state = states.get(provider) if isinstance(states, Mapping) else None
    return state if isinstance(state, Mapping) else EMPTY


def with_provider_state(provider: str, state: JsonObject) -> JsonObject:
    """Returns the `extra` of a block with this state of this provider."""
    return {STATE_FIELD: {provider: dict(state)}}


def without_state(extra: JsonObject, provider: str) -> JsonObject:
    """Returns `extra` without the provider's state."""
    content = extra.get(STATE_FIELD)
    if not isinstance(content, Mapping) or provider not in content:
        return extra
    rest = {name: value for name, value in content.items() if name != provider}
    others = {name: value for name, value in extra.items() if name != STATE_FIELD}
    return {**others, **({STATE_FIELD: rest} if rest else {})} or EMPTY


def several_states(states: Sequence[JsonObject]) -> JsonObject:
    """Returns the states of several pieces of reasoning, each an `extra` of its own, as the `extra` of one message.

    Signed ones are a list; of any other kind, a message has one."""
    if len(states) == 1:
        return states[0]
    joined: dict[str, list[JsonObject]] = {}
    for extra in states:
        found = extra.get(STATE_FIELD)
        for provider, state in (found if isinstance(found, Mapping) else EMPTY).items():
            if isinstance(state, Mapping):
                joined.setdefault(provider, []).append(state)
    return {STATE_FIELD: {provider: _one_state(found) for provider, found in joined.items()}}


def _one_state(states: Sequence[JsonObject]) -> Json:
    if len(states) > 1 and all(not _SIGNED.isdisjoint(state) for state in states):
        return {_SEVERAL: [dict(state) for state in states]}
    return {name: value for state in states for name, value in state.items()}


def each_state(state: JsonObject) -> list[JsonObject]:
    """Returns the states of a provider that a message has for its pieces of reasoning, in their order."""
    several = state.get(_SEVERAL)
    if isinstance(several, list):
        return [one for one in several if isinstance(one, Mapping)]
    return [state] if state else []


def placed_state(extra: JsonObject, length: int | None, hidden_calls: int, *, behind_text: bool) -> JsonObject:
    """Returns the `extra` of a piece of reasoning whose signed states say where it stands in a message: how long its
    text is (None: as they are), behind how many calls, without the `hidden_calls` of its response, and whether behind
    text."""
    states = extra.get(STATE_FIELD)
    if not isinstance(states, Mapping):
        return extra
    placed: dict[str, Json] = {
        provider: _placed(state, length, hidden_calls, behind_text=behind_text)
        if isinstance(state, Mapping) and not _SIGNED.isdisjoint(state)
        else state
        for provider, state in states.items()
    }
    return {**extra, STATE_FIELD: placed}


def _placed(state: JsonObject, length: int | None, hidden_calls: int, *, behind_text: bool) -> dict[str, Json]:
    calls = state.get("calls")
    changed = {**state}
    if length is not None and "signature" in state:
        changed["length"] = length
    if length is not None or "calls" in state:
        changed["calls"] = max((calls if isinstance(calls, int) else 0) - hidden_calls, 0)
        changed["behind_text"] = behind_text or state.get("behind_text") is True
    return changed


def named_state(extra: JsonObject) -> str | None:
    """Returns the state of a piece of reasoning as one text that says whose it is; None where it has none."""
    found = extra.get(STATE_FIELD)
    for provider, state in (found if isinstance(found, Mapping) else EMPTY).items():
        for name in OPAQUE_FIELDS:
            if isinstance(state, Mapping) and isinstance(said := state.get(name), str) and said:
                label = label_of(said)
                return f"{label}{provider}:{name}:{said[len(label) :]}"
    return None


def read_named_state(text: str) -> JsonObject:
    """Returns the `extra` of a piece of reasoning whose state says whose it is; empty for any other text."""
    found = _match_named(text)
    if found is None:
        return EMPTY
    label, provider, name = found.groups()
    return with_provider_state(provider, {name: (label or "") + text[found.end() :]})


def is_unsigned(value: JsonObject) -> bool:
    """Returns whether an object of the Messages API is thinking without the signature by which its maker knows it."""
    kind = value.get("type")
    if kind != "thinking" and kind != "redacted_thinking":
        return False
    state = value.get(_FIELD_OF_TYPE[kind])
    return not (isinstance(state, str) and state.strip())


def state_label(adapter: str, host: str, credential: str) -> str:
    """Returns the label of the backend with this adapter and host, and this name of its credential."""
    made_of = "\0".join((adapter, host.lower(), credential)).encode("utf-8", "surrogatepass")
    return LABEL_MARK + hashlib.blake2b(made_of, digest_size=_DIGEST_BYTES, person=b"state label").hexdigest()


def label_of(state: str) -> str:
    """Returns the label that a state begins with; empty where it has none."""
    found = _match_label(state)
    return "" if found is None else found[0]


def with_states(value: JsonObject, change: Change) -> JsonObject:
    """Returns an object with each of its states changed; the same object where it has none.

    `value` is the `extra` of a block, or a message, item, block, part or call of a wire. Of a provider whose state is
    left out, nothing stays below its name.
    """
    kind = value.get("type")
    field = _FIELD_OF_TYPE.get(kind, _FIELD_OF_PART) if isinstance(kind, str) else _FIELD_OF_PART
    state = value.get(field)
    states = value.get(STATE_FIELD)
    changed: dict[str, Json] = {}
    if isinstance(state, str) and state:
        changed[field] = change(state)
    if isinstance(states, Mapping):
        changed[STATE_FIELD] = _changed_states(states, change)
    if not changed or all([value[name] == new for name, new in changed.items()]):
        return value
    return {name: new for name, old in value.items() if (new := changed.get(name, old)) is not None or old is None}


def _changed_states(states: JsonObject, change: Change) -> Json:
    kept: dict[str, Json] = {}
    for provider, state in states.items():
        found = state if isinstance(state, Mapping) else EMPTY
        changed = _changed_state(found, change)
        if changed is not None:
            kept[provider] = state if changed is found else dict(changed)
    return kept or None


def _changed_state(state: JsonObject, change: Change) -> JsonObject | None:
    """Returns the state of one provider, with all of its pieces changed; None where one of them is left out."""
    changed: dict[str, Json] = {
        name: change(said) for name in OPAQUE_FIELDS if isinstance(said := state.get(name), str) and said
    }
    if isinstance(several := state.get(_SEVERAL), list):
        pieces = [_changed_state(one, change) if isinstance(one, Mapping) else one for one in several]
        changed[_SEVERAL] = None if None in pieces else [dict(p) if isinstance(p, Mapping) else p for p in pieces]
    if None in changed.values():
        return None
    return {**state, **changed} if changed else state
