"""Finds the template of a message from the values of the names and the recorded messages of several exchanges."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

import msgspec

from adapters.proto.backend.field_values import STRUCT, VALUE, WRAPPERS, is_map
from adapters.proto.backend.schema import Field, MessageType
from adapters.proto.backend.template_keys import AS, BY, CALL, CASE, EACH, TOGETHER, WITH, check_oneofs
from adapters.proto.backend.template_names import Scope, Variants
from adapters.proto.learn.alignment import APART, ONE_CALL, Alignment, align
from adapters.proto.learn.json_search import JsonSample, find_json, others
from adapters.proto.learn.learned import NOTHING, Doubt, Learned, best, merged_order, unexplained
from adapters.proto.learn.samples import ABSENT, Sample, conditions, holds, is_there, value_of
from adapters.proto.learn.value_search import find_value, json_value
from adapters.text.backend.request_template import names_in
from gateway.core.conversation import Json
from gateway.core.errors import OptionError

# A list of messages that differ by a name in a field, such as the tensors of a request, has few of them.
_MOST_KEYS: Final = 64


def find_message(kind: MessageType, scope: Scope, samples: Sequence[Sample], place: str) -> Learned:
    """Returns the template of messages that are all there: an object of the fields that are recorded in any of them."""
    found = {field: find_field(field, scope, samples, f"{place}.{field.name}") for field in kind.fields}
    doubts: list[Doubt] = []
    for oneof in kind.oneofs:
        members = {field: found[field] for field in oneof.fields if found[field].template is not None}
        if len(members) > 1:
            chosen, rest = _of_oneof(kind, members, scope, samples, place)
            found |= {field: chosen.get(field, NOTHING) for field in oneof.fields}
            doubts += rest
    fields: Json = {
        str(field.name): learned.template for field, learned in found.items() if learned.template is not None
    }
    doubts += [doubt for learned in found.values() for doubt in learned.doubts]
    return Learned(fields, tuple(doubts), sum(learned.evidence for learned in found.values()))


def _of_oneof(
    kind: MessageType, members: Mapping[Field, Learned], scope: Scope, samples: Sequence[Sample], place: str
) -> tuple[Mapping[Field, Learned], tuple[Doubt, ...]]:
    """Returns the templates of the members of a oneof, of which a request has one: as they were found, or each with
    words of its own of one choice. Where neither is possible they are the first one, and what is open."""
    ways = [members]
    for name in scope.cases:
        cases = {field: _case(name, field, scope, samples, f"{place}.{field.name}") for field in members}
        ways.append({field: learned for field, learned in cases.items() if learned is not None})
    for way in ways:
        templates = {str(field.name): learned.template for field, learned in way.items()}
        if len(way) == len(members) and _excludes(templates, kind, place):
            return way, ()
    (first, learned), *others = members.items()
    reasons = (f"{first.name!r} and {field.name!r} are of one oneof, and both are recorded" for field, _ in others)
    return {first: learned}, tuple(Doubt("open", place, reason) for reason in reasons)


def _excludes(templates: Mapping[str, Json], kind: MessageType, place: str) -> bool:
    """Whether never two of these fields have a value."""
    try:
        check_oneofs(templates, kind, place)
    except OptionError:
        return False
    return True


def find_field(field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Learned:
    """Returns the template of one field, whether or not all messages have it."""
    if all(value_of(sample.message, field) is ABSENT for sample in samples):
        return NOTHING
    if is_map(field):
        return _map(field, scope, samples, place)
    if field.is_repeated:
        return _repeated(field, scope, samples, place)
    plain = _single(field, scope, samples, place)
    return plain if not plain.open else best([plain, *_cases(field, scope, samples, place)]) or plain


def _single(field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Learned:
    found = find_value(field, scope, samples, place)
    if found is not None:
        return found
    kind = field.message_type
    if kind is None or kind.full_name in WRAPPERS:
        return _no_name(field, scope, samples, place)
    if kind.full_name in (STRUCT, VALUE):
        return _struct(field, scope, samples, place)
    present = [value_of(sample.message, field) is not ABSENT for sample in samples]
    below = [Sample(sample.values, getattr(sample.message, field.name)) for sample in _there(samples, present)]
    return _when(find_message(kind, scope, below, place), field, scope, samples, present, place)


def _there(samples: Sequence[Sample], present: Sequence[bool]) -> list[Sample]:
    return [sample for sample, there in zip(samples, present, strict=True) if there]


def _when(
    learned: Learned, field: Field, scope: Scope, samples: Sequence[Sample], present: Sequence[bool], place: str
) -> Learned:
    """Returns the template of a message with the condition under which it is sent. Of a repeated field it is that of
    one item."""
    for template, doubts in _conditional(learned.template, scope, samples, present, place):
        written: Json = [template] if field.is_repeated else template
        if is_there(written, field, scope, samples, present):
            return msgspec.structs.replace(learned, template=template, doubts=(*learned.doubts, *doubts))
    if learned.open:
        return learned
    return learned.with_doubts(Doubt("open", place, "when the message is sent is not shown"))


def _conditional(
    template: Json, scope: Scope, samples: Sequence[Sample], present: Sequence[bool], place: str
) -> Iterator[tuple[Json, tuple[Doubt, ...]]]:
    yield template, ()
    if not isinstance(template, dict) or all(present):
        return
    names = conditions(scope, samples, present)
    # A condition is mostly one of the names that the message holds.
    names = [name for name in names if name in {*names_in(template)}] or names
    for name in names:
        rest = tuple(other for other in names if other != name)
        reason = f"sent where {name} has a value; as well fit"
        yield {WITH: name, **template}, (Doubt("chosen", place, reason, rest),) if rest else ()


def _no_name(field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Learned:
    found = [value for sample in samples if (value := value_of(sample.message, field)) is not ABSENT]
    values = {" ".join(f"{value!r}".split()) for value in found}
    shown = min(values, key=len)
    if len(values) == 1:
        return unexplained(place, f"when {shown} is sent is not shown")
    differs = len(values) == len(samples) and "$request_id" in scope.kinds and isinstance(found[0], str)
    alternatives = ("$request_id",) if differs else ()
    reason = f"no name has its values, such as {shown[:60]}{'; it differs in each, as an id does' if differs else ''}"
    return Learned(doubts=(Doubt("open", place, reason, alternatives),))


def _struct(field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Learned:
    below = [JsonSample(sample.values, json_value(value_of(sample.message, field))) for sample in samples]
    learned = find_json(scope, below, place)
    if learned.open or holds(learned.template, field, scope, samples):
        return learned
    return learned.with_doubts(Doubt("open", place, "no template makes the recorded object"))


def _cases(field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Iterator[Learned]:
    """Yields the templates that choose the value by the words of a choice."""
    for name in scope.cases:
        if (learned := _case(name, field, scope, samples, place)) is not None:
            yield learned


def _case(name: str, field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Learned | None:
    """Returns the template that chooses the value by the words of this choice; None: they do not."""
    found: dict[str, Json] = {}
    doubts: list[Doubt] = []
    evidence = 1
    words = dict.fromkeys(sample.values.get(name) for sample in samples)
    for word in words:
        below = [sample for sample in samples if sample.values.get(name) == word]
        if all(value_of(sample.message, field) is ABSENT for sample in below):
            continue
        learned = _single(field, scope, below, f"{place}.{word}")
        doubts += learned.doubts
        evidence += learned.evidence
        if learned.template is None or not isinstance(word, str):
            return None
        found[word] = learned.template
    template: Json = {CASE: name, **found}
    if not found or not holds(template, field, scope, samples):
        return None
    unseen = [word for word in scope.cases[name] if word not in words]
    if unseen:
        doubts.append(Doubt("open", place, f"no exchange shows {name} as {', '.join(unseen)}"))
    return Learned(template, tuple(doubts), evidence)


def _map(field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Learned:
    found = find_value(field, scope, samples, place)
    if found is not None:
        return found
    keys = dict.fromkeys(key for sample in samples for key in getattr(sample.message, field.name))
    members: dict[str, Json] = {}
    doubts: list[Doubt] = []
    evidence = 0
    for key in keys:
        learned = _member(key, field, scope, samples, f"{place}.{key}")
        doubts += learned.doubts
        evidence += learned.evidence
        if learned.template is not None:
            members[str(key)] = learned.template
    return Learned(members, tuple(doubts), evidence)


def _member(key: Any, field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Learned:
    """Returns what makes one value of a map: a name, or a constant."""
    below = [_with_key(sample, field, key) for sample in samples]
    names = [name for name in scope.kinds if holds({key: name}, field, scope, below)]
    if names:
        return Learned(names[0], others(place, names[0], names[1:]), 1)
    held = next(value[key] for sample in below if (value := getattr(sample.message, field.name)))
    if isinstance(held, str | bool | int | float) and holds({key: held}, field, scope, below):
        return Learned(held)
    return unexplained(place, "no name and no constant has its values")


def _with_key(sample: Sample, field: Field, key: Any) -> Sample:
    """Returns the sample with this key alone in its map."""
    message = type(sample.message)()
    message.CopyFrom(sample.message)
    for other in [other for other in getattr(message, field.name) if other != key]:
        del getattr(message, field.name)[other]
    return Sample(sample.values, message)


def _repeated(field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Learned:
    found = find_value(field, scope, samples, place)
    if found is not None:
        return found
    ways = [*_each_ways(field, scope, samples, place), *_list_ways(field, scope, samples, place)]
    learned = best(ways)
    if (learned is None or learned.open) and (tools := _tools(field, scope, samples, place)) is not None:
        return tools
    reason = "no list has as many items"
    if "$turns" in scope.items and field.message_type is not None:
        reason += "; where one turn is several messages in another order, write a list of them for its variant"
    return learned or unexplained(place, reason)


def _tools(field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Learned | None:
    """Returns the template of tools that are also recorded beside the choice to call none; None: they are not."""
    below = [sample for sample in samples if sample.values.get("$choice") != "none"]
    if len(below) == len(samples):
        return None
    learned = best(_each_ways(field, scope, below, place))
    if learned is None or not isinstance(learned.template, dict) or learned.template[EACH] != "$tools":
        return None
    reason = "recorded beside tool_choice none, with which the gateway never sends tools"
    return learned.with_doubts(Doubt("open", place, reason))


def _each_ways(field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Iterator[Learned]:
    if field.message_type is None:
        return
    recorded = [list(getattr(sample.message, field.name)) for sample in samples]
    for name, variants in scope.items.items():
        found = (
            _each(name, variants, alignment, field, scope, place)
            for alignment in align(name, variants.by, samples, recorded)
        )
        if (learned := best(one for one in found if one.evidence)) is not None:
            yield learned


def _each(name: str, variants: Variants, alignment: Alignment, field: Field, outer: Scope, place: str) -> Learned:
    """Returns the template of the items of a list, each variant from its own messages. `evidence` is 0 where no name of
    an item is in it."""
    template: dict[str, Json] = {EACH: name}
    if variants.by:
        template[BY] = variants.by
    if alignment.together:
        template[TOGETHER] = alignment.together
    doubts: list[Doubt] = []
    evidence = 0
    for (variant, apart), below in alignment.samples.items():
        scope = variants.scopes[variant]
        key = variant or AS
        calls = scope.items["$calls"].all().kinds if apart == ONE_CALL else {}
        inner = scope.within(calls, scope.items) if calls else scope
        learned = find_message(field.message_type, inner, below, f"{place}.{key}")
        if not apart:
            template[key] = learned.template
        elif calls:
            template[key] = _of_calls(learned.template, {*calls} - {*scope.kinds})
        else:
            _add_apart(template, key, apart, learned.template)
        doubts += learned.doubts
        own = {*scope.names()} - {*outer.names()}
        evidence += learned.evidence if own & {*names_in(learned.template)} else 0
    if variants.by:
        for variant in variants.required:
            if variant not in template:
                doubts.append(Doubt("open", f"{place}.{variant}", f"no exchange has an item {variant!r} of {name}"))
    return Learned(template, tuple(doubts), evidence)


def _add_apart(template: dict[str, Json], key: str, name: str, learned: Json) -> None:
    """Adds the message that a turn sends for its text or its calls alone, in their order."""
    listed = template.setdefault(key, [])
    assert isinstance(listed, list) and isinstance(learned, dict), "a turn is one message, or a list of them"
    listed.append({WITH: name, **learned})
    listed.sort(key=lambda one: APART.index(one[WITH]) if isinstance(one, dict) else 0)


def _of_calls(learned: Json, names: set[str]) -> Json:
    """Returns the message of one call, with its fields that hold names of a call."""
    assert isinstance(learned, dict), "a message is an object"
    return {key: {CALL: one} if names & {*names_in(one)} else one for key, one in learned.items()}


def _list_ways(field: Field, scope: Scope, samples: Sequence[Sample], place: str) -> Iterator[Learned]:
    """Yields the templates that write the items one by one: by their positions, or by a name that they hold."""
    recorded = [list(getattr(sample.message, field.name)) for sample in samples]
    lengths = {len(items) for items in recorded if items}
    if len(lengths) == 1:
        rows = [[items[position] if items else None for items in recorded] for position in range(lengths.pop())]
        yield _listed(field, scope, samples, rows, place)
    elif field.message_type is not None:
        for key in field.message_type.fields:
            if (keyed := _by_key(key, recorded)) is not None:
                yield _listed(field, scope, samples, keyed, place)


def _by_key(key: Field, recorded: Sequence[Sequence[Any]]) -> list[list[Any]] | None:
    """Returns the items that have one value in this field, for each such value; None: the field tells no items apart,
    or their order differs."""
    if key.type != key.TYPE_STRING or key.is_repeated:
        return None
    names = [[getattr(item, key.name) for item in items] for items in recorded]
    if any(len({*row}) != len(row) or not all(row) for row in names):
        return None
    order = merged_order(names)
    if order is None or len(order) > _MOST_KEYS:
        return None
    return [
        [next((item for item in items if getattr(item, key.name) == name), None) for items in recorded]
        for name in order
    ]


def _listed(
    field: Field, scope: Scope, samples: Sequence[Sample], rows: Sequence[Sequence[Any]], place: str
) -> Learned:
    items: list[Json] = []
    doubts: list[Doubt] = []
    evidence = 0
    for position, row in zip(count(), rows, strict=False):
        at = f"{place}[{position}]"
        below = [_alone(sample, field, item) for sample, item in zip(samples, row, strict=True)]
        learned = _item(field, scope, below, row, at)
        doubts += learned.doubts
        evidence += learned.evidence
        if learned.template is not None:
            items.append(learned.template)
    return Learned(items, tuple(doubts), evidence)


def _item(field: Field, scope: Scope, below: Sequence[Sample], row: Sequence[Any], place: str) -> Learned:
    present = [item is not None for item in row]
    found = find_value(field, scope, below, place)
    if found is not None:
        return msgspec.structs.replace(found, template=_first(found.template))
    if field.message_type is None:
        return _no_name(field, scope, below, place)
    inner = [Sample(sample.values, item) for sample, item in zip(below, row, strict=True) if item is not None]
    return _when(find_message(field.message_type, scope, inner, place), field, scope, below, present, place)


def _first(template: Json) -> Json:
    return template[0] if isinstance(template, list) else template


def _alone(sample: Sample, field: Field, item: Any) -> Sample:
    """Returns the sample with this item alone in its repeated field."""
    message = type(sample.message)()
    if item is not None:
        getattr(message, field.name).append(item)
    return Sample(sample.values, message)
