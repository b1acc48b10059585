"""Turns for tests: short builders for tables, and hostile histories for laws."""

from itertools import count

import msgspec
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, Image, Reasoning, Role, Source, Text, ToolCall, ToolResult, Turn


def system(text: str = "Be brief.") -> Turn:
    return Turn("system", (Text(text),))


def user(text: str = "hello") -> Turn:
    return Turn("user", (Text(text),))


def assistant(text: str = "done") -> Turn:
    return Turn("assistant", (Text(text),))


def calling(*ids: str, text: str = "") -> Turn:
    """An assistant turn with one call per id."""
    calls = tuple(ToolCall(call_id, "read", f'{{"n": {n}}}') for n, call_id in enumerate(ids))
    return Turn("assistant", (Text(text), *calls) if text else calls)


def result(call_id: str, text: str = "ok") -> Turn:
    return Turn("tool", (ToolResult(call_id, (Text(text),)),))


def numbered(*turns: Turn) -> tuple[Turn, ...]:
    """The turns as a decoder hands them over: each with its index and a source."""
    return tuple(
        msgspec.structs.replace(turn, index=index, source=Source("chat", {"role": turn.role, "at": index}))
        for index, turn in enumerate(turns)
    )


def conversation(*turns: Turn) -> Conversation:
    return Conversation(numbered(*turns))


# Few ids, so that they collide; empty ones, and such as look like an id that is derived from another.
IDS = st.sampled_from(["", "a", "b", "c", "a_2", "a_2_2", "call_0_0", "call_2_1"])


@st.composite
def broken_turns(draw: st.DrawFn) -> tuple[Turn, ...]:
    """Any sequence of turns. Every text in it is a marker of its own: `<0>`, `<1>`, ..."""
    numbers = count()

    def marker() -> Text:
        return Text(f"<{next(numbers)}>")

    def speech(role: Role) -> Turn:
        blocks = tuple(marker() for _ in range(draw(st.integers(0, 2))))
        return Turn(role, blocks)

    def call_turn() -> Turn:
        ids = draw(st.lists(IDS, min_size=1, max_size=4))
        arguments = draw(st.sampled_from(["{}", "", "null", '{"command": "rm -rf', '{"n": 1}']))
        text = (marker(),) if draw(st.booleans()) else ()
        thought = (Reasoning(marker().text),) if draw(st.booleans()) else ()
        return Turn("assistant", (*thought, *text, *(ToolCall(call_id, marker().text, arguments) for call_id in ids)))

    def result_turn() -> Turn:
        image = (Image(f"data:{marker().text}"),) if draw(st.integers(0, 5)) == 0 else ()
        content = (*image, *(marker() for _ in range(draw(st.integers(0, 2)))))
        name = draw(st.sampled_from([None, "read"]))
        return Turn("tool", (ToolResult(draw(IDS), content, is_error=draw(st.booleans())),), name=name)

    kinds = draw(st.lists(st.sampled_from("uasccrrrr"), max_size=24))
    makers = {
        "u": lambda: speech("user"),
        "a": lambda: speech("assistant"),
        "s": lambda: speech("system"),
        "c": call_turn,
        "r": result_turn,
    }
    return numbered(*(makers[kind]() for kind in kinds))


@st.composite
def valid_turns(draw: st.DrawFn) -> tuple[Turn, ...]:
    """A history that keeps every rule: rounds of parallel calls, answered in any order, ids unique."""
    numbers = count()
    turns: list[Turn] = [system() for _ in range(draw(st.integers(0, 2)))]
    for kind in draw(st.lists(st.sampled_from("uacc"), max_size=12)):
        if kind == "u":
            turns.append(user(f"<{next(numbers)}>"))
        elif kind == "a":
            turns.append(assistant(f"<{next(numbers)}>"))
        else:
            ids = [f"call_{next(numbers)}" for _ in range(draw(st.integers(1, 4)))]
            turns.append(calling(*ids))
            turns.extend(result(call_id, f"<{next(numbers)}>") for call_id in draw(st.permutations(ids)))
    return numbered(*turns)
