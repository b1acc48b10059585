"""Every name of a mapping that is misspelt is refused at start, with its place and the name that was meant."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.registry import load_adapter
from gateway.settings import BackendSettings
from tests.adapters.proto.backend.mappings import DELTAS, FORMS, MAPPINGS, PARTS, RELAY, TALK, TENSORS, Entry
from tests.tiers import sample

# Words of the service itself, which no schema holds, and a path and a file.
FREE = {"gateway", "from", "system", "user", "assistant", "tool", "running", "/complete", "None", TALK["schema"]["set"]}
# JSON inside a text or a Struct has any keys, and a text field may have any value.
FREE_PLACES = {("$json", "schema"), ("$json", "strict"), ("labels", "from"), ("body", "said"), ("body", "kind")}
FREE_PLACES |= {("reasons", "halt"), ("metadata", "x-route"), ("metadata", "x-request-id")}
FREE_PLACES |= {("$json", "result"), ("$json", "failed"), ("reasons", "function_call")}
FREE_WORDS = {"engines"}
FREE_VALUES: set[tuple[str | int, str | int]] = {
    ("when", "problem"),
    ("user", "role"),
    ("assistant", "role"),
    ("body", "kind"),
    ("when", "detail"),
}
FREE_VALUES |= {("as", "auto"), ("as", "none"), ("tool", "role")}
FREE_VALUES |= {("state", "provider"), ("state", "field"), ("when", "error"), ("metadata", "x-route")}
FREE_VALUES |= {(place, key) for place in (0, 1) for key in ("name", "datatype")}  # of tensors
Path = tuple[str | int, ...]


def load(entry: Entry) -> object:
    return load_adapter("x", BackendSettings("proto", "http://host", options=entry), 1 << 20)


def refusal(entry: Entry) -> str:
    """The message of the refusal."""
    with pytest.raises(SettingsError) as refused:
        load(entry)
    return refused.value.message


def names(value: Any, path: Path = ()) -> Iterator[tuple[Path, str, bool]]:
    """The place of every key and every text of a mapping, with the text, and whether it is a key."""
    if isinstance(value, dict):
        for key, below in value.items():
            if (*path[-1:], key) not in FREE_PLACES:
                yield (*path, key), key, True
            yield from names(below, (*path, key))
    elif isinstance(value, list):
        for position, below in enumerate(value):
            yield from names(below, (*path, position))
    elif isinstance(value, str) and not (value in FREE or path[-2:] in FREE_VALUES or path[-1] == "tensor"):
        yield path, value, False


def misspelt(entry: Entry, path: Path, old: str, new: str, key: bool) -> Entry:
    changed = copy.deepcopy(entry)
    place: Any = changed
    for step in path[:-1]:
        place = place[step]
    if key:
        items = [(new if name == old else name, below) for name, below in place.items()]
        place.clear()
        place.update(items)
    else:
        place[path[-1]] = new
    return changed


def variants(text: str) -> Iterator[tuple[str, str]]:
    """Each name inside a text, misspelt: of a path every part, except for keys and values of items."""
    for found in re.finditer(r"(?<![\"=])\b[A-Za-z_]\w*", text):
        if found[0] in FREE_WORDS:
            continue
        yield found[0], text[: found.end()] + "q" + text[found.end() :]


CASES = [
    pytest.param(service, path, text, new, meant, key, id=f"{service}-{'.'.join(map(str, path))}-{new}")
    for service, entry in MAPPINGS.items()
    for path, text, key in names(entry)
    for meant, new in variants(text)
]


@sample("service", "key")
@pytest.mark.parametrize(("service", "path", "text", "new", "meant", "key"), CASES)
def test_a_misspelt_name_is_refused_with_the_one_that_was_meant(
    service: str, path: Path, text: str, new: str, meant: str, key: bool
) -> None:
    message = refusal(misspelt(MAPPINGS[service], path, text, new, key))
    steps = path[:-1] if key or isinstance(path[-1], int) else path
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    assert message.removeprefix("unknown setting '").startswith(f"backends.x{place}"), message
    assert meant in message.replace(new, ""), message


def changed(entry: Entry, **keys: Json) -> Entry:
    return {**copy.deepcopy(entry), **keys}


def rule(entry: Entry, position: int, **keys: Json) -> Entry:
    made = copy.deepcopy(entry)
    made["read"][position].update(keys)
    return made


def template(entry: Entry, **keys: Json) -> Entry:
    """The mapping with other fields in its template."""
    return {**copy.deepcopy(entry), "request": {**entry["request"], **keys}}


def turns(entry: Entry, role: str, form: Json) -> Entry:
    """The mapping with another form of the turns of one role."""
    return template(entry, turns={**entry["request"]["turns"], role: form})


def saying(text: Json) -> Json:
    """The turns of the assistant of `parts`, with another form of their text."""
    assistant = PARTS["request"]["turns"]["assistant"]
    return {**assistant, "parts": {**assistant["parts"], "text": text}}


def read(entry: Entry, rule: Json) -> Entry:
    """The mapping with another rule in front of its own."""
    return {**copy.deepcopy(entry), "read": [rule, *entry["read"]]}


REFUSED: list[tuple[Entry, str]] = [
    (read(FORMS, {"text": "blocks.text"}), "read[0].text: 'blocks' is repeated; use each"),
    (read(FORMS, {"text": "detail[0]"}), "read[0].text: 'detail' is of string; it has no items"),
    (
        read(FORMS, {"text": "labels[0]"}),
        "read[0].text: 'labels' is of acme.forms.v1.Out.LabelsEntry; it has [",
    ),
    (read(FORMS, {"text": 'blocks["a"].text'}), "read[0].text: 'blocks' is of acme.forms.v1.Block; it has [0] and"),
    (read(FORMS, {"text": "blocks[0"}), "read[0].text: 'blocks[0' is not a path; write names, such as"),
    (read(FORMS, {"text": ""}), "read[0].text: '' is not a path"),
    (read(FORMS, {"text": "blocks[txt=a].text"}), "read[0].text: acme.forms.v1.Block has no field 'txt'; did you mean"),
    (read(FORMS, {"text": "blocks[media=a].text"}), "read[0].text: 'media' is of acme.forms.v1.Media; it must be"),
    (
        read(FORMS, {"when": {"blocks[media=a].text": "set"}, "text": "detail"}),
        "read[0].when.blocks[media=a].text: 'media'",
    ),
    (
        read(TENSORS, {"text": "answer.raw_output_contents[x=a]"}),
        "read[0].text: [x=a] needs messages; the items are of bytes",
    ),
    (
        read(FORMS, {"finish": {"at": "special", "reasons": {"true": "stop"}}}),
        "read[0].finish: a bool has no other meaning than the end; use `when` for more",
    ),
    (read(FORMS, {"finish": {"oneof": "kind"}}), "read[0].finish.oneof: acme.forms.v1.Out has no oneof 'kind'"),
    (changed(TALK, method="acme.talk.v1.Talk/Speek"), "method: acme.talk.v1.Talk has no method 'Speek'; did you mean"),
    (changed(TALK, carrier="grpcweb"), "carrier: there is no carrier 'grpcweb'; did you mean 'grpc_web'?"),
    (read(FORMS, {"text": {"tensor": "x"}}), "read[0].text.tensor: acme.forms.v1.Out has no tensors: no 'outputs'"),
    (
        read(TENSORS, {"text": "error", "hidden": {"tensor": "x"}}),
        "read[0].hidden.tensor: a tensor cannot stand here: it",
    ),
    (read(FORMS, {"hidden": "special"}), "read[0].hidden: only a rule with `text` can hide it"),
    (read(FORMS, {"opaque": {"at": "detail", "on": "call"}}), "read[0].opaque.on: the rule has no `call`"),
    (
        read(
            FORMS,
            {
                "each": "blocks",
                "call": {"name": "call.name", "arguments": "call.fields"},
                "opaque": {"at": "call.seal", "on": "call", "mode": "delta"},
            },
        ),
        "read[0].opaque.mode: only state of the reasoning comes in pieces",
    ),
    (read(FORMS, {"opaque": {"at": "special", "on": "reasoning"}}), "read[0].opaque.at: 'special' is of bool"),
    (read(RELAY, {"openai": True}), "read[0].openai: it reads the whole document in `json`"),
    (read(RELAY, {"json": "body", "openai": True, "text": "x"}), "read[0].openai: it reads the whole document"),
    (read(RELAY, {"json": "last", "text": "x"}), "read[0].json: 'last' is of bool; it must be text or bytes"),
    (read(RELAY, {"json": "body", "text": "a..b"}), "read[0].text: 'a..b' is not a path"),
    (read(RELAY, {"json": "body", "rules": [{"json": "x", "text": ""}]}), "read[0].rules[0].json: the rule reads JSON"),
    (
        read(RELAY, {"json": "body", "text": {"tensor": "x"}}),
        "read[0].text: a tensor belongs to a message, not to JSON",
    ),
    (read(RELAY, {"json": "body", "finish": {"oneof": "x"}}), "read[0].finish.oneof: JSON has no oneof"),
    (
        changed(RELAY, read=[{"json": "body", "text": "x", "finish": {"at": "y"}}]),
        "read: the mapping has $openai, but no",
    ),
    (
        changed(FORMS, metadata={"authorization": "x"}),
        "metadata.authorization: a credential belongs in `api_key_env`, ",
    ),
    (changed(FORMS, metadata={"grpc-timeout": "1S"}), "metadata.grpc-timeout: 'grpc-timeout' is no name of metadata"),
    (changed(FORMS, metadata={"x-a": "é"}), "metadata.x-a: the value has characters"),
    (changed(FORMS, metadata={"x-a": "$prompt"}), "metadata.x-a: '$prompt' has another name than $model"),
    (template(FORMS, rules="a $system b"), "request.rules: a name cannot stand inside a text"),
    (template(FORMS, heat="a $temperature"), "request.heat: text stands before a text only"),
    (
        template(FORMS, rules="of $temperature"),
        "request.rules: text stands before a text only; $temperature is a number",
    ),
    (template(FORMS, rules={"$json": {"a": "$turns"}}), "request.rules.$json.a: $turns is a list, which is no JSON"),
    (template(FORMS, rules="text"), "request: $turns needs the variant 'system', or the template $system"),
    (turns(PARTS, "system", {"speaker": "SPEAKER_RULES"}), "request: no field gets the text of the role 'system'"),
    (turns(PARTS, "user", {"speaker": "SPEAKER_PERSON"}), "request: no field gets the text of the role 'user'"),
    (
        turns(PARTS, "assistant", saying({"text": "said"})),
        "request: no field gets the text of the role 'assistant'",
    ),
    (
        turns(PARTS, "tool", {"parts": [{"result": {"id": "$id", "name": "$name"}}]}),
        "request: no field gets the text of the role 'tool'",
    ),
    (changed(TALK, request={"text": "$transcript"}), "request: the template has $transcript, but no $system"),
    (template(FORMS, tools=[]), "request: the mapping has a rule `call`, but no $tools"),
    (
        changed(FORMS, read=FORMS["read"][:2] + FORMS["read"][3:]),
        "read: the mapping has $tools, but no rule reads `call`",
    ),
    (
        template(FORMS, entries={**FORMS["request"]["entries"], "system": {"role": "rules"}}),
        "request: $system and the variant 'system' of $turns exclude each other",
    ),
    (
        template(FORMS, entries={**FORMS["request"]["entries"], "tool": {"role": "tool"}}),
        "request: the part 'result' and the variant 'tool' of $turns exclude each other",
    ),
    (template(FORMS, entries={**FORMS["request"]["entries"], "together": 1}), "request.entries.together: write true"),
    (changed(TALK, carrier="body"), "carrier: 'body' carries one message, but acme.talk.v1.Talk/Speak streams"),
    (changed(TALK, carrier="sse_base64", ends="status"), "ends: the carrier 'sse_base64' reports no status"),
    (changed(TALK, ends="close"), "ends: the carrier 'grpc_web' reports a status"),
    (changed(TALK, path="speak"), "path: the path 'speak' must begin with /"),
    (changed(TALK, request={"engine": "$model"}), "request: the template must contain $prompt, $transcript, $turns or"),
    (changed(TALK, request={"text": "$prompt", "engine": "x/$model/y"}), "request.engine: a name cannot stand inside"),
    (changed(TALK, request={"text": ["$prompt"]}), "request.text: "),
    (changed(TALK, request={"text": "$prompt", "limits": "hot"}), 'request.limits: "hot" is no value of'),
    (
        turns(PARTS, "user", {"speaker": 2, "parts": [{"text": "$text"}]}),
        "request.turns.user.speaker: 2 is no value of acme.parts.v1.Speaker; write its name, SPEAKER_PERSON",
    ),
    (
        turns(PARTS, "user", {"speaker": 99, "parts": [{"text": "$text"}]}),
        "request.turns.user.speaker: 99 is no value of acme.parts.v1.Speaker",
    ),
    (
        rule(TALK, 1, when={"ending": 1}),
        'read[1].when.ending: 1 is no value of acme.talk.v1.Ending; write its name, ENDING_DONE; "set" and',
    ),
    (changed(TALK, request={"text": "$prompt", "seed": "$temperature"}), "request.seed: $temperature is a number"),
    (changed(TALK, request={"text": "$prompt", "seed": 2**63}), "request.seed: 9223372036854775808 is no value"),
    (changed(TALK, request={"text": "$prompt", "limits": {"until": "$model"}}), "request.limits.until: the field is"),
    (changed(TALK, request={"text": "$prompt", "limits": {"$case": "$choice"}}), "request.limits.$case: there are no"),
    (changed(TALK, tool_format="hermes"), "tool_format: there is no tool format 'hermes'"),
    (changed(TALK, read=[{"text": "so_far"}]), "read: no rule tells the end of the response"),
    (changed(TALK, read=[{"finish": {"at": "ending"}}]), "read[0].finish: ENDING_BROKEN has no meaning"),
    (changed(TALK, read=[{}]), "read[0]: the rule reads nothing"),
    (rule(TALK, 1, text="tokens_in"), "read[1].text: 'tokens_in' is of int64; it must be text or bytes"),
    (rule(TALK, 1, text="so_far.x"), "read[1].text: 'so_far' is a field of string, which has no fields"),
    (rule(TALK, 1, usage={}), "read[1].usage: the rule reads nothing"),
    (
        rule(TALK, 1, usage={"completion": "tokens_out", "answer": "tokens_out"}),
        "read[1].usage.answer: it stands in place of `completion`",
    ),
    (rule(TALK, 1, choice="so_far"), "read[1].choice: 'so_far' is of string; it must be a whole number"),
    (rule(TALK, 0, error={"when": {}}), "read[0].error.when: an error needs a condition"),
    (rule(TALK, 0, error={"when": {"failure": "set"}, "status": 200}), "read[0].error.status: 200 is no status"),
    (rule(TALK, 1, call={"name": "so_far", "arguments": "so_far"}), "read: the calls of a template with $prompt"),
    (
        rule(TALK, 1, finish={"at": "ending", "reasons": {"ENDING_OPEN": "stop"}, "failures": []}),
        "read[1].finish: ENDING_BROKEN has no meaning",
    ),
    (
        rule(
            TALK,
            1,
            finish={
                "at": "ending",
                "reasons": {"ENDING_OPEN": "stop", "ENDING_DONE": "stop", "ENDING_FULL": "length"},
                "failures": ["ENDING_BROKEN"],
            },
        ),
        "read[1].finish.reasons: ENDING_OPEN is the value 0, which stands for 'not set' here",
    ),
    (
        rule(TALK, 1, finish={**TALK["read"][1]["finish"], "none": ["2"]}),
        "read[1].finish.none: acme.talk.v1.Ending has no value '2'",
    ),
    (rule(TALK, 1, finish={}), "read[1].finish: write one of `at`, `oneof` and `reason`"),
    (rule(TALK, 1, finish={"reason": "stop"}), "read[1].finish: a `reason` needs a condition"),
    (rule(PARTS, 2, each="counts"), "read[2].each: 'counts' is one message, which needs no `each`"),
    (rule(PARTS, 1, text="parts.text"), "read[1].text: 'parts' is repeated; use each"),
    (
        rule(
            PARTS,
            2,
            rules=[{"call": {"id": "call.id", "name": "call.name", "arguments": "call.fields", "mode": "delta"}}],
        ),
        "read[2].rules[0].call.mode: a google.protobuf.Struct holds whole arguments",
    ),
    (
        rule(DELTAS, 1, call={"each": "calls", "name": "name", "arguments": "arguments", "mode": "total"}),
        "read[1].call.mode: 'total' needs an `index` or an `id`",
    ),
    (changed(PARTS, read=PARTS["read"][3:]), "read: no rule reads text or calls"),
    (changed(PARTS, read=[{"each": "parts", "text": "text"}, PARTS["read"][4]]), "read: the mapping has $tools, but"),
    (
        changed(PARTS, request={**PARTS["request"], "tools": []}),
        "request: the mapping has a rule `call`, but no $tools",
    ),
    (
        changed(PARTS, request={**PARTS["request"], "choice": {"mode": "MODE_FREE", "tool": "$chosen"}}),
        "request.choice: 'mode' and 'tool' are of one oneof",
    ),
]


@pytest.mark.parametrize(("entry", "said"), REFUSED, ids=[said[:60] for _, said in REFUSED])
def test_a_mapping_that_cannot_work_is_refused(entry: Entry, said: str) -> None:
    assert refusal(entry).startswith(f"backends.x.{said}")
