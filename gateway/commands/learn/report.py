"""Writes what was learned: the replays, what was not decided, and what recordings change about an entry."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from adapters.proto.learn import Doubt
from gateway.commands.learn.replay import Difference, Replay
from gateway.core.conversation import Json

_WIDTH: Final = 100
_POSITION: Final = re.compile(r"\[\d+\]")
_MEANINGS: Final[Mapping[str, str]] = {
    "open": "open, which the mapping does not say",
    "chosen": "chosen, where something else fits as well",
    "assumed": "assumed, which no exchange shows",
    "unread": "unread, values that no rule reads",
}


def replays_text(replays: Sequence[Replay], held_back: Sequence[Replay]) -> str:
    """Returns one line for each exchange, and one for each place at which its replay differs."""
    lines = ["replayed"]
    for one, note in [*((one, "") for one in replays), *((one, ", held back") for one in held_back)]:
        known = "" if one.compared else ", of an answer that is not known"
        lines.append(f"  {one.name}: {'equal' if one.equal else 'differs'}{note}{known}")
        lines += [f"    {difference.text()}" for difference in (*one.request, *one.answer)]
    return "\n".join(lines) + "\n"


def doubts_text(doubts: Sequence[Doubt]) -> str:
    """Returns what was not decided, by its kind."""
    if not doubts:
        return "everything was decided\n"
    lines = ["not decided"]
    for kind, meaning in _MEANINGS.items():
        found = [doubt for doubt in doubts if doubt.kind == kind]
        lines += [f"  {meaning}"] if found else []
        lines += [f"    {_doubt(doubt)}" for doubt in found]
    return "\n".join(lines) + "\n"


def _doubt(doubt: Doubt) -> str:
    return doubt.text().partition(": ")[2]


def entry_text(entry: Mapping[str, Json]) -> str:
    """Returns an entry as settings.json holds it; what fits one line stands on one."""
    return f"{_written(dict(entry), '')}\n"


def _written(value: Json, indent: str) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= _WIDTH or not isinstance(value, dict | list):
        return line
    below = f"{indent}  "
    if isinstance(value, list):
        items = [_written(item, below) for item in value]
    else:
        items = [f"{json.dumps(key, ensure_ascii=False)}: {_written(item, below)}" for key, item in value.items()]
    first, last = "[]" if isinstance(value, list) else "{}"
    inside = f",\n{below}".join(items)
    return f"{first}\n{below}{inside}\n{indent}{last}"


def changes_text(
    entry: Mapping[str, Json], learned: Mapping[str, Json], replays: Sequence[Replay], outdated: Iterable[str]
) -> str:
    """Returns what recordings change about an entry: each place at which it does not replay them, with what was learned
    there; empty where nothing changes."""
    lines = list(_places(replays))
    for key in ("request", "read"):
        differs = any(_differences(one, key) for one in replays)
        lines += list(_parts(key, entry.get(key), learned.get(key))) if differs else []
    lines += [f"schema: {text}" for text in dict.fromkeys(outdated)]
    return "".join(f"{line}\n" for line in lines)


def _differences(replay: Replay, key: str) -> Sequence[Difference]:
    return replay.request if key == "request" else replay.answer


def _places(replays: Sequence[Replay]) -> Iterator[str]:
    """Yields each place at which replays differ, with the first difference, and the exchanges."""
    found: dict[str, list[tuple[str, Difference]]] = {}
    for one in replays:
        for difference in (*one.request, *one.answer):
            found.setdefault(_POSITION.sub("[]", difference.place), []).append((one.name, difference))
    for place, differences in found.items():
        names = ", ".join(dict.fromkeys(name for name, _ in differences))
        first = differences[0][1]
        yield f"{place}: recorded {first.recorded or 'nothing'}, the entry makes {first.made or 'nothing'} ({names})"


def _parts(place: str, before: Json, after: Json) -> Iterator[str]:
    """Yields the places at which two parts of an entry differ; what only the entry has stays."""
    match before, after:
        case dict(), dict():
            for key, value in after.items():
                yield from _parts(f"{place}.{key}", before.get(key), value)
        case list(), list() if len(before) == len(after):
            for position, (one, other) in enumerate(zip(before, after, strict=True)):
                yield from _parts(f"{place}[{position}]", one, other)
        case _:
            if before != after:
                shown = "nothing" if before is None else json.dumps(before, ensure_ascii=False)
                yield f"learned {place}: {json.dumps(after, ensure_ascii=False)} in place of {shown}"
