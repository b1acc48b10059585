"""Makes the JSON Schema (2020-12) of settings.json from the types of its values, shaped like the file.

In the file, the policy keys stand at the top level and in every model entry, and an adapter's keys in its entry of
`backends`. What depends on another part of the file, such as the name of a backend, is checked when the file is read.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, TypeAlias, cast, get_args, get_origin

import msgspec

from gateway.core.conversation import JsonObject
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.model_facts import ModelFacts
from gateway.core.policy import FlattenOptions, LoopGuard, Policy, PromptCache, RecentToolResults
from gateway.core.requirements import Requirement
from gateway.providers.profile import Profile
from gateway.settings.compression import MODEL_COMPRESS_KEYS
from gateway.settings.descriptor_files import DescriptorFiles
from gateway.settings.model_entry import MODEL_KEEPER_KEYS, MODEL_KEYS, MODEL_RESPONSES_KEYS
from gateway.settings.policies import ALIASES
from gateway.settings.presets import PRESET
from gateway.settings.read import SCHEMA_KEY, STORE
from gateway.settings.values import (
    BackendSettings,
    BudgetSettings,
    Candidate,
    CompressSettings,
    Count,
    InspectorSettings,
    KeeperSettings,
    KeyCompressSettings,
    KeySettings,
    LimitSettings,
    LogSettings,
    Price,
    ResponsesSettings,
    ServerSettings,
    StateSettings,
    TracingSettings,
    VisionSettings,
)

Schema: TypeAlias = dict[str, Any]  # Any: the keywords of JSON Schema

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REF: Final = "#/$defs/{name}"
_STRING: Final[Schema] = {"type": "string"}

_SECTIONS: Final[Mapping[str, type[msgspec.Struct]]] = {
    "server": ServerSettings,
    "limits": LimitSettings,
    "log": LogSettings,
    "tracing": TracingSettings,
    "inspector": InspectorSettings,
    "state": StateSettings,
    "compress": CompressSettings,
    "responses": ResponsesSettings,
    "keeper": KeeperSettings,
    "vision": VisionSettings,
}
# The types whose keys docs/settings.md describes, by the beginning of a key's path there.
_DESCRIBED: Final[Mapping[str, type[msgspec.Struct]]] = {
    "": Policy,
    "flatten.": FlattenOptions,
    "recent_tool_results.": RecentToolResults,
    "loop_guard.": LoopGuard,
    "prompt_cache.": PromptCache,
    "keys.*.": KeySettings,
    "keys.*.budget.": BudgetSettings,
    "keys.*.compress.": KeyCompressSettings,
    "backends.*.": BackendSettings,
    "models.*.candidates.": Candidate,
    "models.*.price.": Price,
    "models.*.facts.": ModelFacts,
    **{f"{name}.": kind for name, kind in _SECTIONS.items()},
}
# The types whose whole numbers may not be negative (`check_not_negative`).
_NOT_NEGATIVE: Final = (Policy, RecentToolResults, LoopGuard, BackendSettings)


class AdapterKeys(msgspec.Struct, frozen=True):
    """The keys of one adapter: the values of `adapter` that choose it, its options, and their descriptions by key."""

    names: tuple[str, ...]
    options: type[msgspec.Struct]
    descriptions: Mapping[str, str] = {}


def settings_schema(adapters: Iterable[AdapterKeys], descriptions: Mapping[str, str]) -> JsonObject:
    """Returns the schema of the file. `descriptions` are sentences by the path of a key: `server.port`,
    `backends.*.base_url`."""
    adapters = list(adapters)
    kinds = [*_DESCRIBED.values(), Profile, DescriptorFiles, *_options_and_objects(adapters)]
    definitions = cast(dict[str, Schema], msgspec.json.schema_components(kinds, ref_template=_REF)[1])
    for prefix, kind in _DESCRIBED.items():
        _describe(definitions[kind.__name__], prefix, descriptions)
    for kind in _NOT_NEGATIVE:
        _refuse_negative(definitions[kind.__name__]["properties"])
    policy = definitions.pop(Policy.__name__)["properties"]
    policy["profile"] = {**_STRING, "description": policy["profile"].get("description", "")}
    policy["trim_step"]["minimum"] = 1  # Policy.__post_init__
    definitions["StateSettings"]["properties"]["store"]["anyOf"][0]["pattern"] = f"^(?:{STORE.pattern})$"
    definitions["Profile"] = _own_profile(definitions["Profile"])
    definitions["Model"] = _model(policy, definitions)
    common = definitions.pop(BackendSettings.__name__)
    del common["properties"]["options"]
    _with_aliases(common, ("max_history_messages",))
    for adapter in adapters:
        definitions[adapter.options.__name__] = _options(adapter, common["properties"], definitions)
    definitions.pop(DescriptorSet.__name__, None)
    definitions["Backend"] = {**common, "description": "One backend.", "allOf": [*common["allOf"], *_choices(adapters)]}
    top: Schema = {"type": "object", "properties": {SCHEMA_KEY: _STRING, **policy, **_parts(descriptions)}}
    _with_aliases(top, policy)
    head = {"$schema": DIALECT, "title": "settings.json of Dragoman"}
    for schema in definitions.values():
        _unfold(schema)
    return {**head, **top, "additionalProperties": False, "$defs": dict(sorted(definitions.items()))}


def _parts(descriptions: Mapping[str, str]) -> Schema:
    """Returns the properties of the top level besides the policy."""
    parts: Schema = {name: _ref(kind.__name__) for name, kind in _SECTIONS.items()}
    parts["tracing"] = {"anyOf": [parts["tracing"], {"type": "null"}], "default": None}
    for name, entry in (
        ("keys", KeySettings.__name__),
        ("profiles", Profile.__name__),
        ("backends", "Backend"),
        ("models", "Model"),
    ):
        parts[name] = {"type": "object", "additionalProperties": _ref(entry)}
    return parts


def _ref(name: str) -> Schema:
    return {"$ref": _REF.format(name=name)}


def _options_and_objects(adapters: Iterable[AdapterKeys]) -> list[type[msgspec.Struct]]:
    """Returns the types of the options, and those of objects that an annotation leaves open (`keys_of`)."""
    return [kind for adapter in adapters for kind in (adapter.options, *_open_objects(adapter.options).values())]


def _open_objects(options: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct]]:
    return {
        field.name: meta.extra["keys_of"]
        for field in msgspec.structs.fields(options)
        if get_origin(field.type) is Annotated
        for meta in get_args(field.type)[1:]
        if isinstance(meta, msgspec.Meta) and meta.extra and "keys_of" in meta.extra
    }


def _describe(schema: Schema, prefix: str, descriptions: Mapping[str, str]) -> None:
    for name, property_ in schema["properties"].items():
        if f"{prefix}{name}" in descriptions:
            property_["description"] = descriptions[f"{prefix}{name}"]


def _refuse_negative(properties: Schema) -> None:
    for schema in properties.values():
        for choice in schema.get("anyOf", [schema]):
            if choice.get("type") == "integer":
                choice.setdefault("minimum", 0)


def _own_profile(schema: Schema) -> Schema:
    """Returns the schema of a profile in the file: every key that is absent is that of its `base`."""
    return {**schema, "properties": {**_without_defaults(schema["properties"]), "base": _STRING}}


def _model(policy: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Returns the schema of a model entry, where an absent key is that of the top level."""
    own: Schema = {"backend": _STRING, "name": {"type": ["string", "null"]}}
    own["context_length"] = {"anyOf": [msgspec.json.schema(Count), {"type": "null"}]}
    own["candidates"] = {"type": "array", "items": {"anyOf": [_STRING, _ref(Candidate.__name__)]}}
    own["longer"] = {"type": ["string", "null"]}
    own["price"] = {"anyOf": [_ref(Price.__name__), {"type": "null"}]}
    own["facts"] = _ref(ModelFacts.__name__)
    own["require"] = msgspec.json.schema(tuple[Requirement, ...])
    for name, kind, keys in (
        ("compress", CompressSettings, MODEL_COMPRESS_KEYS),
        ("responses", ResponsesSettings, MODEL_RESPONSES_KEYS),
        ("keeper", KeeperSettings, MODEL_KEEPER_KEYS),
    ):
        properties = _without_defaults(definitions[kind.__name__]["properties"])
        allowed = {key: value for key, value in properties.items() if key in keys}
        own[name] = {"type": "object", "properties": allowed, "additionalProperties": False}
    properties = {name: schema for name, schema in {**own, **_without_defaults(policy)}.items() if name in MODEL_KEYS}
    model: Schema = {"description": "The route of a model name.", "type": "object", "properties": properties}
    _with_aliases(model, policy)
    return {**model, "required": ["backend"], "additionalProperties": False}


def _without_defaults(properties: Mapping[str, Schema]) -> Schema:
    return {
        name: {keyword: value for keyword, value in schema.items() if keyword != "default"}
        for name, schema in properties.items()
    }


def _with_aliases(schema: Schema, names: Iterable[str]) -> None:
    """Adds the aliases of these keys, which may not stand beside the key itself."""
    names = frozenset(names)
    both = []
    for alias, name in ALIASES.items():
        if name in names:
            meant = {keyword: value for keyword, value in schema["properties"][name].items() if keyword != "default"}
            schema["properties"][alias] = {**meant, "deprecated": True, "description": f"The former name of `{name}`."}
            both.append({"not": {"required": [alias, name]}})
    schema["allOf"] = both


def _options(adapter: AdapterKeys, common: Schema, definitions: dict[str, Schema]) -> Schema:
    """Returns the schema of an entry with this adapter: its keys, and no other than those of every backend."""
    schema = definitions[adapter.options.__name__]
    _describe(schema, "", adapter.descriptions)
    properties = schema["properties"]
    for field in msgspec.structs.fields(adapter.options):
        if field.type is DescriptorSet:
            properties[field.name] = {**properties[field.name], **_ref(DescriptorFiles.__name__)}
    for name, kind in _open_objects(adapter.options).items():
        _loosen(kind, definitions)
        properties[name]["anyOf"] = [_STRING, _ref(kind.__name__)]
    # The keys of every backend are described, and judged, by the entry itself.
    schema["properties"] = {**dict.fromkeys(common, True), **properties}
    required = schema.pop("required", [])
    if required:
        presets = [{"required": [PRESET]}] if getattr(adapter.options, "presets", None) else []
        schema["anyOf"] = [*presets, {"required": required}]
    return {**schema, "additionalProperties": False}


def _loosen(kind: type[msgspec.Struct], definitions: Mapping[str, Schema]) -> None:
    """Lets an object be laid over the one that its `base` names: then no key of it is required."""
    for name in msgspec.json.schema_components([kind], ref_template=_REF)[1]:
        definitions[name].pop("required", None)
    definitions[kind.__name__]["properties"]["base"] = _STRING


def _choices(adapters: Iterable[AdapterKeys]) -> list[Schema]:
    return [
        {
            "if": {"properties": {"adapter": {"enum": list(adapter.names)}}, "required": ["adapter"]},
            "then": _ref(adapter.options.__name__),
        }
        for adapter in adapters
    ]


def _unfold(schema: Schema) -> None:
    """Joins the lines of a docstring."""
    if "description" in schema:
        paragraphs = schema["description"].split("\n\n")
        schema["description"] = "\n\n".join(" ".join(part.split()) for part in paragraphs)
