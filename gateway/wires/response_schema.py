"""Places the name and the description that stand beside a JSON schema in `response_format`.

Sources: Gemini API, structured output, and Anthropic's SDKs, `transform_schema`: the model reads `title` and
`description` of a schema, and beside `$ref` no member may stand. OpenAI, API reference, `response_format` and
`text.format`: `name` is required.
"""

from typing import Final

from gateway.core.conversation import Conversation, Json, JsonObject
from gateway.core.notices import Notice

# What stands beside a schema, and the members of a schema that say it.
_MEMBERS: Final = {"name": "title", "description": "description"}
_NAME: Final = "answer"


def named_schema(said: JsonObject) -> dict[str, Json]:
    """Returns the schema and what stands beside it, with a name where the client's dialect has none."""
    return dict(said) if "name" in said else {"name": _NAME, **said}


def described_schema(conversation: Conversation, notices: list[Notice]) -> dict[str, Json] | None:
    """Returns the schema that the client asks for, with its name and its description where it has none of its own; None
    where the client asks for no schema. A notice tells of each that is left out."""
    match conversation.params.get("response_format"):
        case {"type": "json_schema", "json_schema": dict(said)} if isinstance(schema := said.get("schema"), dict):
            pass
        case _:
            return None
    described = dict(schema)
    for name, member in _MEMBERS.items():
        text = said.get(name)
        if not text or schema.get(member) == text:
            continue
        if "$ref" not in schema and member not in schema:
            described[member] = text
            continue
        reason = "is a reference" if "$ref" in schema else f"has its own {member}"
        place = conversation.paths.param("response_format")
        detail = f"the backend has no field for {name!r} of {place}, whose schema {reason}"
        notices.append(Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug"))
    return described
