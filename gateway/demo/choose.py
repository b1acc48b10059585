"""A phrase and the offered tools in, the tool whose words it shares most of out."""

import re
from collections.abc import Sequence
from typing import Final

from gateway.demo.dialogue import OfferedTool
from gateway.demo.words import vocabulary

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD: Final = re.compile(r"[^\W_]+")
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_SIGN: Final = re.compile(r"(?<=\d)\s?([+*/])\s?(?=\d)")
_ENDINGS: Final = ("ing", "es", "ed", "s")
# Long descriptions speak of everything; what a tool is for stands in their beginning.
_DESCRIPTION: Final = 160
FITS: Final = 2

_STOP: Final = vocabulary(
    """
    a an the of for to in on at by and or then is are was be do does it its this that these those with from into as me
    my i you your we us please can could would what who which how when where why give tell want need now first get set
    use run call tool function given return current if not all any one value name string number
    """
)
# What people say -> what tools are called.
_MEANS: Final = {
    "+": "add", "plus": "add", "sum": "add", "total": "add", "minus": "subtract", "times": "multiply",
    "product": "multiply", "*": "multiply", "divided": "divide", "/": "divide", "calculat": "calculate",
    "comput": "calculate", "temperature": "weather", "hot": "weather", "cold": "weather", "warm": "weather",
    "rain": "weather", "sunny": "weather", "forecast": "weather", "clock": "time", "o'clock": "time",
    "lookup": "search", "find": "search", "google": "search", "look": "search", "show": "read", "open": "read",
    "cat": "read", "mail": "email", "shell": "bash", "command": "bash", "execute": "bash", "terminal": "bash",
}  # fmt: skip


def words(text: str) -> frozenset[str]:
    """The words that carry meaning, without endings; of scripts without blanks, every pair of characters."""
    found = {_stem(word) for word in _WORD.findall(_CAMEL.sub(" ", text).lower()) if word not in _STOP}
    for run in _CJK.findall(text):
        found.update(run[at : at + 2] for at in range(len(run) - 1))
    return frozenset(found)


def best_tool(phrase: str, tools: Sequence[OfferedTool]) -> OfferedTool | None:
    """The tool that fits best, the earlier of equals; None when none fits."""
    ranked = [(fit(phrase, tool), -at) for at, tool in enumerate(tools)]
    if not ranked or max(ranked)[0] < FITS:
        return None
    return tools[-max(ranked)[1]]


def fit(phrase: str, tool: OfferedTool) -> int:
    """How well a tool fits: its name counts most, then what it says about itself and its parameters."""
    said = words(phrase) | _meanings(phrase)
    name = words(tool.name)
    about = words(tool.description[:_DESCRIPTION]) - name
    properties = tool.parameters.get("properties")
    asks = words(" ".join(properties)) - name - about if isinstance(properties, dict) else frozenset()
    literal = 4 if re.search(rf"(?<!\w){re.escape(tool.name)}(?!\w)", phrase) else 0
    return literal + 3 * len(said & name) + len(said & about) + len(said & asks)


def _meanings(phrase: str) -> frozenset[str]:
    spoken = (*_WORD.findall(phrase.lower()), *_SIGN.findall(phrase))
    return frozenset(_MEANS[form] for word in spoken for form in (word, _stem(word)) if form in _MEANS)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
