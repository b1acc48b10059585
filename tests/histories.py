"""Hypothesis strategies: chat requests with histories of any shape, sound and broken, and profiles of any kind."""

from typing import Final

from hypothesis import strategies as st

from gateway.core.conversation import Json
from gateway.providers.profile import Alphabet, Profile
from gateway.providers.registry import PROFILES
from gateway.providers.tool_rules import ToolRules

Message = dict[str, Json]

# Few, so that they meet again; those that a provider refuses among them.
IDS: Final = st.sampled_from(["a", "b", "functions.f:0", "call_0_0", "a b", "\u00e9", "x" * 70, "x" * 71])
NAMES: Final = st.sampled_from(["f", "g", "read file", "\u0444", "x" * 80, "x" * 81, "call_mcp_tool", "9"])
TEXTS: Final = st.sampled_from(["hello", "well?", "", " \n", "User: no"])
ARGUMENTS: Final = st.sampled_from(
    ['{"n": 1}', "{}", "", " ", "{", "[1]", "null", '"x"', "7", '{"n": {"m": [1]}}', "[" * 80]
)
WILD_ARGUMENTS: Final[st.SearchStrategy[Json]] = st.sampled_from([{"n": 1}, [1], None, 7])
IMAGE: Final[Json] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def _some(**fields: st.SearchStrategy[Json]) -> st.SearchStrategy[Message]:
    """An object with any of the fields, mostly with few."""
    return st.just({}) | st.just({}) | st.fixed_dictionaries({}, optional=fields)


def _text_part(kind: str, field: str) -> st.SearchStrategy[Json]:
    return st.builds(lambda text, rest: {"type": kind, field: text, **rest}, TEXTS, _some(cache_control=st.just(1)))


PARTS: Final = st.lists(_text_part("text", "text") | _text_part("text", "text") | st.just(IMAGE), max_size=3)
CONTENTS: Final[st.SearchStrategy[Json]] = TEXTS | TEXTS | PARTS
BROKEN: Final[st.SearchStrategy[Json]] = st.sampled_from([None, {"found": 1}, 7, ["text"], [{"type": "text"}]])
REASONING: Final[st.SearchStrategy[Json]] = st.sampled_from(["because", "", None, 7, ["a"]])
SPOKEN: Final = _some(
    reasoning_content=REASONING,
    reasoning=REASONING,
    reasoning_details=st.just([{"type": "reasoning.text"}]),
    finish_reason=st.sampled_from(["stop", None]),
    index=st.just(0),
    logprobs=st.just(None),
    refusal=st.sampled_from(["No.", None]),
    name=NAMES,
    annotations=st.just([]),
)
SIGNED: Final = _some(
    extra_content=st.sampled_from([{"google": {"thought_signature": "s"}}, {"google": {}}, {"other": 1}, None]),
    index=st.integers(0, 2),
)


@st.composite
def calls(
    draw: st.DrawFn, ids: st.SearchStrategy[Json] = IDS, arguments: st.SearchStrategy[Json] = ARGUMENTS
) -> Message:
    """One entry of `tool_calls`."""
    if draw(st.integers(0, 6)) == 0:
        body: Message = {"type": "custom", "custom": {"name": draw(NAMES), "input": "x"}}
    else:
        body = {"type": "function", "function": {"name": draw(NAMES), "arguments": draw(arguments)}}
    return {"id": draw(ids), **body, **draw(SIGNED)}


@st.composite
def rounds(draw: st.DrawFn, arguments: st.SearchStrategy[Json] = ARGUMENTS) -> list[Message]:
    """An assistant message with calls, each of them answered, in any order."""
    made = draw(st.lists(calls(arguments=arguments), min_size=1, max_size=3, unique_by=lambda call: str(call["id"])))
    said: Message = {"content": draw(CONTENTS | st.none())} if draw(st.booleans()) else {}
    answers: list[Message] = [
        {"role": "tool", "tool_call_id": call["id"], "content": draw(CONTENTS), **draw(_some(name=NAMES))}
        for call in draw(st.permutations(made))
    ]
    return [{"role": "assistant", **said, "tool_calls": list(made), **draw(SPOKEN)}, *answers]


@st.composite
def older_rounds(draw: st.DrawFn) -> list[Message]:
    """The deprecated form of one call and its result."""
    name = draw(NAMES)
    called: Json = {"name": name, "arguments": draw(ARGUMENTS)}
    return [
        {"role": "assistant", "content": None, "function_call": called, **draw(SPOKEN)},
        {"role": "function", "name": name, "content": draw(TEXTS)},
    ]


def _one(role: str, **fields: st.SearchStrategy[Json]) -> st.SearchStrategy[list[Message]]:
    said = CONTENTS if role in ("user", "assistant", "tool") else TEXTS | PARTS
    return st.builds(
        lambda content, needed, rest: [{"role": role, "content": content, **needed, **rest}],
        said,
        st.fixed_dictionaries(dict(fields)),
        SPOKEN if role == "assistant" else _some(name=NAMES),
    )


SOUND: Final[st.SearchStrategy[list[Message]]] = (
    _one("user")
    | _one("user")
    | _one("assistant")
    | _one("system")
    | _one("developer")
    | rounds()
    | rounds()
    | older_rounds()
)


def _answering(name: str) -> list[Message]:
    return [{"role": "function", "name": name, "content": "x"}]


def _calling(*made: Message) -> list[Message]:
    return [{"role": "assistant", "tool_calls": list(made)}]


def _saying(role: str, content: Json) -> list[Message]:
    return [{"role": role, "content": content}]


ODD: Final[list[list[Message]]] = [
    [{"role": "assistant", "tool_calls": []}],
    [{"role": "assistant", "tool_calls": [{"type": "function", "function": {"arguments": None}}]}],
    [{"role": "human", "content": "hello"}],
    [{"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}}],
]
FAULTY: Final[st.SearchStrategy[list[Message]]] = (
    _one("tool", tool_call_id=IDS | st.sampled_from(["", None, 7]))
    | NAMES.map(_answering)
    | st.builds(_calling, calls())
    | st.builds(_calling, calls(st.just("a")), calls(st.just("a")))
    | rounds(WILD_ARGUMENTS)
    | st.builds(_saying, st.sampled_from(["assistant", "user"]), BROKEN)
    | st.sampled_from(ODD)
)


def _flat(pieces: list[list[Message]]) -> list[Message]:
    return [message for piece in pieces for message in piece]


HISTORIES: Final = st.lists(SOUND, min_size=1, max_size=7).map(_flat)
BROKEN_HISTORIES: Final = st.lists(SOUND | FAULTY, min_size=1, max_size=7).map(_flat)


def _entry(kind: str, name: str) -> Json:
    return {"type": kind, kind: {"name": name}, "cache_control": 1}


OFFERED: Final = st.builds(_entry, st.sampled_from(["function", "function", "custom"]), NAMES)
FORCED: Final[st.SearchStrategy[Json]] = (
    st.sampled_from(["auto", "none", "required"])
    | OFFERED
    | st.builds(
        lambda tools: {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}},
        st.lists(OFFERED, max_size=2),
    )
)
OLDER_CHOICES: Final[st.SearchStrategy[Json]] = st.sampled_from(["auto", "none"]) | NAMES.map(
    lambda name: {"name": name}
)


@st.composite
def requests(draw: st.DrawFn, histories: st.SearchStrategy[list[Message]] = BROKEN_HISTORIES) -> Message:
    """A chat request with such a history, and perhaps with tools in the one form or the other."""
    request: Message = {"model": "m", "messages": list(draw(histories))}
    form = draw(st.sampled_from(["none", "tools", "functions"]))
    if form == "tools":
        request["tools"] = [*draw(st.lists(OFFERED, min_size=1, max_size=3)), {"type": "web_search"}]
        request |= draw(_some(tool_choice=FORCED))
    if form == "functions":
        request["functions"] = [{"name": name, "x": 1} for name in draw(st.lists(NAMES, min_size=1, max_size=3))]
        request |= draw(_some(function_call=OLDER_CHOICES))
    return request


_IDS: Final = st.sampled_from(
    [Alphabet(), Alphabet(), Alphabet(characters="A-Za-z0-9", shortest=9, longest=9), Alphabet(longest=40)]
)
_NAMES: Final = st.sampled_from([Alphabet(), Alphabet(characters="A-Za-z0-9_-", first="A-Za-z_", longest=64)])

# What no provider is known to demand yet, but what a settings file may.
MADE_PROFILES: Final = st.builds(
    Profile,
    call_id=_IDS,
    reused_ids=st.sampled_from(["rename", "keep"]),
    tool_names=_NAMES,
    arguments=st.sampled_from(["string", "object"]),
    content=st.sampled_from(["parts", "string"]),
    tool_content=st.sampled_from(["parts", "string"]),
    tool_name=st.sampled_from(["keep", "drop", "derive"]),
    tool_name_field=st.sampled_from(["name", "tool_name"]),
    tool_turns=st.sampled_from(["native", "native", "text"]),
    reasoning=st.sampled_from(["keep", "drop", "echo_in_tool_loop", "echo_all_tool_turns"]),
    reasoning_field=st.sampled_from([None, "reasoning_content", "reasoning", "thoughts"]),
    reasoning_missing=st.sampled_from([None, "", "."]),
    developer=st.sampled_from(["developer", "system"]),
    system=st.sampled_from(["anywhere", "first"]),
    first_turn=st.sampled_from(["any", "user"]),
    last_turn=st.sampled_from(["any", "user"]),
    alternation=st.sampled_from(["free", "strict"]),
    user_after_tool=st.sampled_from(["allow", "bridge"]),
    choice_fields=st.sampled_from(["keep", "drop"]),
    empty_beside_calls=st.sampled_from(["keep", "empty", "null"]),
    empty_text=st.sampled_from([None, "(empty)"]),
    max_tools=st.sampled_from([None, None, 2]),
    result_media=st.sampled_from(["keep", "user", "placeholder"]),
    tool_rules=st.none()
    | st.builds(
        ToolRules,
        parameters=st.sampled_from(["optional", "required"]),
        root=st.sampled_from(["any", "object"]),
        nested=st.sampled_from(["any", "complete"]),
        names=st.sampled_from(["any", "unique"]),
        most_strict=st.sampled_from([None, 0, 1]),
    ),
    missing_signature=st.sampled_from([None, "stand-in"]),
)
ANY_PROFILE: Final = st.sampled_from(list(PROFILES.values())) | MADE_PROFILES
