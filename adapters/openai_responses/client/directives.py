"""Reads the items that change what the answers behind them are asked for.

Source: `ResponseConfigurationUpdateItemParam` of OpenAI's SDK 3.57: each setting holds for later responses until
another update replaces it. No live service was asked.
"""

import msgspec

from adapters.openai_responses.table import TEXT, TextFormat, TextOptions
from adapters.openai_responses.turn_items import ITEMS, Item
from gateway.core.conversation import Directive, EffortChange, FormatChange
from gateway.dialects.field_types import read_fields


class _Reasoning(msgspec.Struct, frozen=True):
    effort: str | None = None


class _Text(msgspec.Struct, frozen=True):
    format: TextFormat | None = None


class _ConfigurationUpdate(msgspec.Struct, frozen=True):
    """The item `configuration_update`."""

    reasoning: _Reasoning | None = None
    text: _Text | None = None


def read_update(item: Item, index: int) -> list[Directive]:
    """Returns what an item `configuration_update` changes. `index` is that by which the client knows the item, below 0
    for a stored one. Raises InvalidRequest that names a field of a wrong type."""
    update = read_fields(item, _ConfigurationUpdate, f"{ITEMS}[{index}]")
    found: list[Directive] = []
    if update.reasoning is not None and update.reasoning.effort is not None:
        found.append(EffortChange(index, update.reasoning.effort))
    if update.text is not None and update.text.format is not None:
        form = update.text.format
        read = TEXT.read(TextOptions(format=form)).get("response_format")
        written = {name: value for name, value in msgspec.to_builtins(form).items() if value is not None}
        found.append(FormatChange(index, read, written))
    return found
