"""Writes the summary of a conversation for the gateway's own request for one: lines of JSON, one for each turn.

It picks sentences and names by their form, as a small model would by their meaning: who asked for what, what is
forbidden or cancelled, what failed, which paths and tools occur.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

MOST_ITEMS: Final = 8
LONGEST: Final = 200
# Names on one line, and lines of them.
NAMES: Final = 6
MOST_NAMES: Final = 48
_SENTENCE: Final = re.compile(r"[^.!?\n]+[.!?]?")
_FORBIDDEN: Final = re.compile(r"\b(?:never|do not|don't|must|only)\b", re.I)
_CANCELLED: Final = re.compile(r"\b(?:cancel\w*|forget about|no longer)\b", re.I)
_FAILED: Final = re.compile(r"^.*\b(?:error|failed|refused|denied)\b.*$", re.I | re.M)
_PATH: Final = re.compile(r"(?<![\w.])/?(?:[\w.-]+/)+[\w.-]*\w")
_NAME: Final = re.compile(r"[A-Za-z_][\w./:@-]{2,60}\w")
_TELLING: Final = re.compile(r"[./:@_-]|[a-z][A-Z]|[A-Za-z]\d")


def summary(question: str) -> str | None:
    """Returns a summary as one JSON object; None where the question is no such request."""
    lines = [*_lines(question)]
    if not lines:
        return None
    members: dict[str, list[dict[str, object]]] = {}
    for kind, text, turns in (*_earlier_items(lines), *_new_items(lines)):
        entries = members.setdefault(kind, [])
        if len(entries) < MOST_ITEMS:
            entries.append({"text": text[:LONGEST], "from": turns})
    return msgspec.json.encode(members).decode()


def _lines(question: str) -> Iterator[dict[str, Any]]:
    """Yields the lines; none where the first one is no turn."""
    for at, written in enumerate(question.split("\n")):
        try:
            line = msgspec.json.decode(written)
        except msgspec.DecodeError:
            line = None
        if isinstance(line, dict) and (line.keys() & {"role", "summary_of_turns"}):
            yield line
        elif not at:
            return


def _earlier_items(lines: list[dict[str, Any]]) -> Iterator[tuple[str, str, list[int]]]:
    """Yields the items of the summary of still earlier turns."""
    for line in lines:
        for item in line.get("items", ()):
            yield item["kind"], item["text"], item["from"]


def _new_items(lines: list[dict[str, Any]]) -> Iterator[tuple[str, str, list[int]]]:
    turns = [line for line in lines if "n" in line]
    asked = [line for line in turns if line["role"] == "user" and line.get("text")]
    if asked:
        yield "goal", str(asked[0]["text"]), [asked[0]["n"]]
    for line in asked:
        for sentence in _SENTENCE.findall(str(line["text"])):
            if _CANCELLED.search(sentence):
                yield "open", f"Cancelled, not to be resumed: {sentence.strip()}", [line["n"]]
            elif _FORBIDDEN.search(sentence):
                yield "constraints", sentence.strip(), [line["n"]]
    for line in turns:
        for result in line.get("results", ()):
            if failed := _FAILED.search(str(result["text"])):
                yield "errors", failed.group().strip(), [line["n"]]
    called = Counter(call["name"] for line in turns for call in line.get("calls", ()))
    if called:
        calls = ", ".join(f"{name} {count} times" for name, count in called.most_common(NAMES))
        yield "tools", f"Called {calls}.", [next(line["n"] for line in turns if line.get("calls"))]
    yield from _named("files", "Files: ", _PATH, turns)
    yield from _named("facts", "Names: ", _NAME, turns)


def _named(kind: str, opening: str, form: re.Pattern[str], turns: list[dict[str, Any]]) -> Iterator[Any]:
    """Yields the names that stand in most turns, some of them in each item."""
    found: Counter[str] = Counter()
    for line in turns:
        text = "\n".join(_texts(line))
        found.update(sorted({name for name in form.findall(text) if _TELLING.search(name)}))
    names = [name for name, _ in found.most_common(MOST_NAMES)]
    for start in range(0, len(names), NAMES):
        yield kind, opening + " ".join(names[start : start + NAMES]), [turns[0]["n"]]


def _texts(line: dict[str, Any]) -> list[str]:
    calls = [call["arguments"] for call in line.get("calls", ())]
    return [str(line.get("text", "")), *calls, *(str(result["text"]) for result in line.get("results", ()))]
