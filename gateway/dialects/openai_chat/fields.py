"""Fields the dialect does not know, put back where they belong."""

from gateway.types import Json, JsonObject


def call_object(id: str, name: str, arguments: str, extra: JsonObject) -> dict[str, Json]:
    """A tool call as the dialect writes it, with the fields we do not know in their places."""
    kind, field = ("custom", "input") if extra.get("type") == "custom" else ("function", "arguments")
    inner = extra.get(kind)
    body: dict[str, Json] = {"name": name, field: arguments, **(inner if isinstance(inner, dict) else {})}
    rest = {key: value for key, value in extra.items() if key not in ("type", kind)}
    return {"id": id, "type": kind, kind: body, **rest}


def merge_fields(known: dict[str, Json], more: JsonObject, *, grow: bool) -> None:
    """Join a later object's fields to those before. With `grow`, text and arrays of a delta are continued, as clients
    do it; without, what came later replaces what was there. `more` is never changed, `known` is."""
    for key, value in more.items():
        before = known.get(key)
        if grow and isinstance(before, str) and isinstance(value, str):
            known[key] = before + value
        elif grow and isinstance(before, list) and isinstance(value, list):
            known[key] = [*before, *value]
        elif grow and isinstance(before, dict) and isinstance(value, dict):
            merged = dict(before)
            merge_fields(merged, value, grow=True)
            known[key] = merged
        elif value is not None or key not in known:
            known[key] = value
