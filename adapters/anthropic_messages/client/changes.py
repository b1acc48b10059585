"""Collects what decoding a request leaves out or changes: the fields and blocks that only this API has."""

from typing import Final

import msgspec
from msgspec import UNSET

from gateway.core.notices import Action, Level, Notice, NoticeRule

_LONGEST: Final = 40


class Changes(msgspec.Struct):
    """The changes of one request as notices. A backend of the same API receives the request without them. `compacted`:
    the history holds a compaction of the gateway."""

    notices: list[Notice] = []
    blocks: dict[str, list[int]] = {}
    compacted: bool = False

    def drop_field(self, name: str, detail: str = "", level: Level = "debug", lost: str | None = None) -> None:
        """Adds a field that is left out, by its path; `lost` is the field whose meaning is."""
        said = detail or f"no other API has a field for {name[:_LONGEST]!r}"
        fields = UNSET if lost is None else (lost,)
        self.notices.append(Notice("decode", "dropped", "FIELD_NOT_SENT", said, level=level, fields=fields))

    def drop_block(self, kind: str, index: int) -> None:
        """Adds a content block that is left out, of the message at `index` (-1: of the system prompt)."""
        self.blocks.setdefault(kind[:_LONGEST], []).append(index)

    def add(
        self, action: Action, rule: NoticeRule, detail: str, level: Level = "debug", index: int | None = None
    ) -> None:
        """Adds any other change."""
        self.notices.append(Notice("decode", action, rule, detail, index=index, level=level))

    def all(self) -> tuple[Notice, ...]:
        """Returns the notices: those of fields, then one for all blocks of a type."""
        return (*self.notices, *[_blocks_dropped(kind, places) for kind, places in self.blocks.items()])


def _blocks_dropped(kind: str, places: list[int]) -> Notice:
    detail = f"no other API has content blocks of type {kind!r}; left out: {len(places)}"
    return Notice(
        "decode", "dropped", "PART_NOT_SENT", detail, index=places[0] if places[0] >= 0 else None, level="warning"
    )
