"""Checks the body of a chat request, as it is sent, against a provider's profile.

There is one predicate for each field of `Profile`, over the JSON alone, without the code that applies a profile.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final, TypeAlias

import msgspec

from gateway.core.conversation import SYSTEM_ROLES, Json, JsonObject
from gateway.providers.profile import Alphabet, Profile
from gateway.providers.request_rules import EFFORTS, FieldRules, ModelRules, RequestRules
from gateway.providers.tool_rules import ToolRules
from gateway.testing.chat_body import (
    RESULTS,
    calls_of,
    ids_of,
    messages_of,
    names_of,
    object_of,
    objects,
    older_call_of,
)

_REASONING: Final = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
_CHOICE: Final = frozenset({"finish_reason", "index", "logprobs"})
_TEXTS: Final = frozenset({"text", "input_text", "output_text", "refusal"})
_COMBINATORS: Final = frozenset({"anyOf", "oneOf", "allOf"})
# The id that the gateway gives to a call without one.
_MADE: Final = re.compile(r"call_(function_)?\d+(_\d+)*")


class Sent(msgspec.Struct, frozen=True):
    """A request as the client wrote it, and as it is sent."""

    request: JsonObject
    body: JsonObject


Demand: TypeAlias = Callable[[Sent, Profile], Iterator[str]]


def broken_demands(sent: Sent, profile: Profile) -> list[str]:
    """Returns one sentence for each demand of the profile that is broken, prefixed by the field of `Profile`."""
    return [f"{field}: {sentence}" for field, demand in DEMANDS.items() for sentence in demand(sent, profile)]


def _fits(identifier: str, alphabet: Alphabet) -> bool:
    if alphabet == Alphabet():
        return True
    longest = len(identifier) if alphabet.longest is None else alphabet.longest
    allowed = alphabet.characters is None or all(re.fullmatch(f"[{alphabet.characters}]", one) for one in identifier)
    begins = alphabet.first is None or re.match(f"[{alphabet.first}]", identifier) is not None
    return alphabet.shortest <= len(identifier) <= longest and allowed and begins


def _call_id(sent: Sent, profile: Profile) -> Iterator[str]:
    for identifier in ids_of(sent.body):
        if not isinstance(identifier, str) or not _fits(identifier, profile.call_id):
            yield f"{identifier!r} is not an id that the provider accepts"


def _reused_ids(sent: Sent, profile: Profile) -> Iterator[str]:
    ids = [str(call.get("id")) for message in messages_of(sent.body) for call in calls_of(message)]
    if profile.reused_ids == "rename":
        if len(set(ids)) < len(ids):
            yield "an id names two calls"
    elif profile.call_id == Alphabet():
        yield from (
            f"{own!r} was never the client's"
            for own in set(ids) - {str(call.get("id")) for call in _asked_calls(sent)}
            if not _MADE.fullmatch(own)
        )


def _asked_calls(sent: Sent) -> Iterator[JsonObject]:
    """Yields the client's calls. A message with an unknown role counts as an assistant's if it has calls."""
    return (call for message in messages_of(sent.request) for call in objects(message.get("tool_calls")))


def _tool_names(sent: Sent, profile: Profile) -> Iterator[str]:
    yield from (
        f"{name!r} is not a name that the provider accepts"
        for name in names_of(sent.body)
        if not _fits(name, profile.tool_names)
    )


def _arguments(sent: Sent, profile: Profile) -> Iterator[str]:
    wanted = str if profile.arguments == "string" else dict
    for message in messages_of(sent.body):
        for call in calls_of(message):
            arguments = object_of(call.get("function", {"arguments": wanted()})).get("arguments")
            if not isinstance(arguments, wanted):
                yield f"{arguments!r} is written as something else than {profile.arguments}"


def _is_list_of_texts(message: JsonObject) -> bool:
    return isinstance(message.get("content"), list) and not _has_other_parts(message)


def _has_other_parts(message: JsonObject) -> bool:
    return any(part.get("type") not in _TEXTS for part in objects(message.get("content")))


def _content(sent: Sent, profile: Profile) -> Iterator[str]:
    if profile.content == "string":
        yield from (f"{message!r} lists texts" for message in messages_of(sent.body) if _is_list_of_texts(message))


def _tool_content(sent: Sent, profile: Profile) -> Iterator[str]:
    if profile.tool_content == "string":
        results = (message for message in messages_of(sent.body) if message.get("role") in RESULTS)
        yield from (f"{message!r} lists texts" for message in results if _is_list_of_texts(message))


def _result_media(sent: Sent, profile: Profile) -> Iterator[str]:
    if profile.result_media != "keep":
        results = (message for message in messages_of(sent.body) if message.get("role") in RESULTS)
        yield from (f"{message!r} holds other parts than text" for message in results if _has_other_parts(message))


def _tool_name(sent: Sent, profile: Profile) -> Iterator[str]:
    """Checks the name in tool messages only: a `function` message is bound to its call by its name, so that its name is
    required."""
    called: dict[Json, Json] = {}
    for message in messages_of(sent.body):
        for call in calls_of(message):
            called[call.get("id")] = object_of(call.get(str(call.get("type")))).get("name")
        if message.get("role") != "tool":
            continue
        name, written = called.get(message.get("tool_call_id")), message.get(profile.tool_name_field)
        if profile.tool_name == "drop" and (written is not None or "name" in message):
            yield f"{message!r} has a name"
        if profile.tool_name == "derive" and name is not None and written != name:
            yield f"{message!r} answers {name!r}"


def _tool_name_field(sent: Sent, profile: Profile) -> Iterator[str]:
    if profile.tool_name != "keep" and profile.tool_name_field != "name":
        results = (message for message in messages_of(sent.body) if message.get("role") == "tool")
        yield from (f"{message!r} is named elsewhere" for message in results if "name" in message)


def _tool_turns(sent: Sent, profile: Profile) -> Iterator[str]:
    if profile.tool_turns == "text":
        for message in messages_of(sent.body):
            if message.get("role") in RESULTS or calls_of(message) or older_call_of(message):
                yield f"{message!r} is a tool's"


def _assistant_messages(sent: Sent) -> list[JsonObject]:
    return [message for message in messages_of(sent.body) if message.get("role") == "assistant"]


def _reasoning(sent: Sent, profile: Profile) -> Iterator[str]:
    if profile.reasoning == "drop":
        yield from (
            f"{message!r} has reasoning" for message in _assistant_messages(sent) if _REASONING & message.keys()
        )


def _reasoning_field(sent: Sent, profile: Profile) -> Iterator[str]:
    field = profile.reasoning_field
    if field is None or profile.reasoning == "drop":
        return
    for message in _assistant_messages(sent):
        others = {"reasoning_content", "reasoning"} - {field}
        if any(message.get(other) is not None for other in others):
            yield f"{message!r} has reasoning elsewhere"
        if not isinstance(message.get(field, ""), str | None):
            yield f"{message!r} has reasoning that is not text"


def _reasoning_missing(sent: Sent, profile: Profile) -> Iterator[str]:
    if profile.reasoning_missing is None or profile.reasoning not in ("echo_in_tool_loop", "echo_all_tool_turns"):
        return
    messages = messages_of(sent.body)
    users = [position for position, message in enumerate(messages) if message.get("role") == "user"]
    first = users[-1] if users and profile.reasoning == "echo_in_tool_loop" else 0
    fields = ("reasoning_content", "reasoning") if profile.reasoning_field is None else (profile.reasoning_field,)
    for message in messages[first:]:
        if calls_of(message) and not any(isinstance(message.get(field), str) for field in fields):
            yield f"{message!r} has no reasoning"


def _developer(sent: Sent, profile: Profile) -> Iterator[str]:
    if profile.developer == "system" and "developer" in _roles(sent):
        yield "a message is the developer's"


def _roles(sent: Sent) -> list[Json]:
    return [message.get("role") for message in messages_of(sent.body)]


def _system(sent: Sent, profile: Profile) -> Iterator[str]:
    if profile.system == "first" and any(role in SYSTEM_ROLES for role in _roles(sent)[1:]):
        yield "a later message is the system's"


def _first_turn(sent: Sent, profile: Profile) -> Iterator[str]:
    first = next((role for role in _roles(sent) if role not in SYSTEM_ROLES), "user")
    if profile.first_turn == "user" and first != "user":
        yield f"the first message is of the {first}"


def _last_turn(sent: Sent, profile: Profile) -> Iterator[str]:
    messages = [message for message in messages_of(sent.body) if message.get("role") not in SYSTEM_ROLES]
    if (
        profile.last_turn == "user"
        and messages
        and messages[-1].get("role") == "assistant"
        and not calls_of(messages[-1])
    ):
        yield "the last message is the assistant's"


def _alternation(sent: Sent, profile: Profile) -> Iterator[str]:
    """Checks the roles of neighbouring messages. A message after calls is exempt: only results may follow calls, which
    does not depend on the profile."""
    if profile.alternation == "strict":
        for before, message in pairwise(messages_of(sent.body)):
            role = message.get("role")
            if role == before.get("role") and role in ("user", "assistant") and not calls_of(before):
                yield f"two messages of the {role} follow each other"


def _user_after_tool(sent: Sent, profile: Profile) -> Iterator[str]:
    spoken = [role for role in _roles(sent) if role not in SYSTEM_ROLES]
    if profile.user_after_tool == "bridge" and any(
        before in RESULTS and role == "user" for before, role in pairwise(spoken)
    ):
        yield "a user's message follows results"


def _choice_fields(sent: Sent, profile: Profile) -> Iterator[str]:
    if profile.choice_fields == "drop":
        for message in _assistant_messages(sent):
            if _CHOICE & message.keys() or any("index" in call for call in calls_of(message)):
                yield f"{message!r} has fields of a choice"


def _empty_beside_calls(sent: Sent, profile: Profile) -> Iterator[str]:
    wanted = "" if profile.empty_beside_calls == "empty" else None
    for message in _assistant_messages(sent) if profile.empty_beside_calls != "keep" else ():
        says_something = message.get("refusal") or any(_texts(message)) or _has_other_parts(message)
        if calls_of(message) and not says_something and message.get("content") != wanted:
            yield f"{message!r} only calls, and its content is not {wanted!r}"


def _empty_text(sent: Sent, profile: Profile) -> Iterator[str]:
    for message in messages_of(sent.body) if profile.empty_text is not None else ():
        if profile.empty_beside_calls == "empty" and calls_of(message) and message.get("content") == "":
            continue
        if any(not text.strip() for text in _texts(message)):
            yield f"{message!r} has blank text"


def _texts(message: JsonObject) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        yield content
    for part in objects(content):
        if part.get("type") in _TEXTS:
            yield str(part.get("refusal" if part.get("type") == "refusal" else "text"))


def _max_tools(sent: Sent, profile: Profile) -> Iterator[str]:
    for field in ("tools", "functions"):
        if profile.max_tools is not None and len(list(objects(sent.body.get(field)))) > profile.max_tools:
            yield f"{field} holds too many"


def _tool_rules(sent: Sent, profile: Profile) -> Iterator[str]:
    rules = profile.tool_rules or ToolRules()
    functions = [object_of(entry.get("function")) for entry in objects(sent.body.get("tools"))]
    functions = [function for function in [*functions, *objects(sent.body.get("functions"))] if "name" in function]
    for function in functions:
        schema = function.get("parameters")
        if rules.parameters == "required" and not schema:
            yield f"{function!r} has no parameters"
        if not isinstance(schema, dict) or not schema:
            continue
        if rules.root == "object" and (schema.get("type") != "object" or _COMBINATORS & schema.keys()):
            yield f"{schema!r} is not a plain object"
        if rules.nested == "complete":
            yield from (f"{found!r} lacks its members" for found in _incomplete(schema))
    names = [str(function["name"]) for function in functions]
    if rules.names == "unique" and len({*names}) < len(names):
        yield "two functions have one name"
    if rules.most_strict is not None and sum(bool(each.get("strict")) for each in functions) > rules.most_strict:
        yield "too many functions are strict"


def _incomplete(schema: JsonObject) -> Iterator[JsonObject]:
    """Yields the schemas that lack `properties` or `items`, in the places of properties, items and branches."""
    kind = schema.get("type")
    if (kind == "object" and "properties" not in schema) or (
        kind == "array" and not {"items", "prefixItems"} & schema.keys()
    ):
        yield schema
    inner = [*objects([*object_of(schema.get("properties")).values(), schema.get("items")])]
    for name in _COMBINATORS:
        inner += objects(schema.get(name))
    for found in inner:
        yield from _incomplete(found)


def _request_rules(sent: Sent, profile: Profile) -> Iterator[str]:
    rules = profile.request_rules or RequestRules()
    limits = {"max_tokens", "max_completion_tokens"} - {rules.limit}
    if rules.limit is not None and (found := limits & sent.body.keys()):
        yield f"{found} is another field for the limit than {rules.limit}"
    if found := rules.renamed.keys() & sent.body.keys():
        yield f"{found} has another name"
    for name, other in rules.beside.items():
        if sent.body.get(name) is not None and sent.body.get(other) is not True:
            yield f"{name} is sent without {other}"
    for name, values in rules.values.items():
        if (value := sent.body.get(name)) is not None and value not in values:
            yield f"{name} is {value!r}"
    offered = [sent.body[name] for name in ("tools", "functions") if name in sent.body]
    if rules.no_tools == "absent" and not any(offered):
        if offered:
            yield "the list of functions is empty"
        if {"auto", "none"} & {str(sent.body.get(name)) for name in ("tool_choice", "function_call")}:
            yield "a choice is sent without functions"
    of_model = rules.of_model(str(sent.body.get("model"))) or ModelRules("")
    yield from _model_rules(sent, of_model, tools=any(offered))
    for each in (rules, of_model):
        yield from _field_rules(sent, each)
    yield from _thinking_rules(sent, rules, of_model)


def _field_rules(sent: Sent, rules: FieldRules) -> Iterator[str]:
    body = sent.body
    if found := {*rules.refused} & body.keys():
        yield f"{found} is refused"
    for name, only in rules.fixed.items():
        if body.get(name) not in (None, only):
            yield f"{name} is {body[name]!r}"
    for name, limits in rules.ranges.items():
        for field in ("max_tokens", "max_completion_tokens") if name == "max_tokens" else (name,):
            value = body.get(field)
            least = -math.inf if limits.least is None else limits.least
            greatest = math.inf if limits.greatest is None else limits.greatest
            if isinstance(value, int | float) and not least <= value <= greatest:
                yield f"{field} is {value!r}"
    for one, other in rules.exclusive:
        if body.get(one) is not None and body.get(other) is not None:
            yield f"{other} is sent beside {one}"
    stop = body.get("stop")
    sequences = [one for one in (stop if isinstance(stop, list) else [stop]) if isinstance(one, str)]
    if rules.stops is not None and len(rules.stops.accepted(sequences)) < len({*sequences}):
        yield f"stop is {stop!r}"


def _thinking_rules(sent: Sent, rules: RequestRules, of_model: ModelRules) -> Iterator[str]:
    body, thinking = sent.body, of_model.thinking or rules.thinking
    off = thinking is not None and bool(thinking.off) and (thinking.off or {}).items() <= body.items()
    if thinking is not None:
        effort = body.get("reasoning_effort")
        if thinking.efforts is not None and effort in EFFORTS and effort not in thinking.efforts and not off:
            yield f"the effort is {effort!r}"
        if thinking.streamed and thinking.default and not off and body.get("stream") is not True:
            yield "the model is to think in a request that is not streamed"
    choice = body.get("tool_choice")
    kind = "named" if isinstance(choice, dict) and choice.get("type") == "function" else choice
    choices = of_model.choices or rules.choices
    while_thinking = of_model.choices_while_thinking or rules.choices_while_thinking
    accepted = while_thinking if thinking is not None and thinking.default and not off and while_thinking else choices
    if isinstance(kind, str) and accepted is not None and kind not in accepted:
        yield f"tool_choice is {choice!r}"


def _model_rules(sent: Sent, rules: ModelRules, *, tools: bool) -> Iterator[str]:
    effort = sent.body.get("reasoning_effort")
    if rules.effort_beside_tools not in (None, effort) and tools:
        yield f"the effort beside functions is {effort!r}"
    if effort == "none" or (effort is None and rules.default_effort == "none"):
        return
    if found := {*rules.refused_while_reasoning} & sent.body.keys():
        yield f"{found} is refused by the model while it reasons"
    for name, only in rules.fixed_while_reasoning.items():
        if (value := sent.body.get(name)) is not None and value != only:
            yield f"{name} is {value!r}"


def _missing_signature(sent: Sent, profile: Profile) -> Iterator[str]:
    for message in messages_of(sent.body) if profile.missing_signature is not None else ():
        for call in calls_of(message)[:1]:
            if not object_of(object_of(call.get("extra_content")).get("google")).get("thought_signature"):
                yield f"{message!r} has no signature"


DEMANDS: Final[Mapping[str, Demand]] = {
    "call_id": _call_id,
    "reused_ids": _reused_ids,
    "tool_names": _tool_names,
    "arguments": _arguments,
    "content": _content,
    "tool_content": _tool_content,
    "result_media": _result_media,
    "tool_name": _tool_name,
    "tool_name_field": _tool_name_field,
    "tool_turns": _tool_turns,
    "reasoning": _reasoning,
    "reasoning_field": _reasoning_field,
    "reasoning_missing": _reasoning_missing,
    "developer": _developer,
    "system": _system,
    "first_turn": _first_turn,
    "last_turn": _last_turn,
    "alternation": _alternation,
    "user_after_tool": _user_after_tool,
    "choice_fields": _choice_fields,
    "empty_beside_calls": _empty_beside_calls,
    "empty_text": _empty_text,
    "max_tools": _max_tools,
    "tool_rules": _tool_rules,
    "request_rules": _request_rules,
    "missing_signature": _missing_signature,
}
