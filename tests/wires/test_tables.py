"""The tables of the wires: what is written is read back, each field has one row, and the pages have the rows."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.anthropic_messages import finish as messages_finish
from adapters.anthropic_messages import table as messages
from adapters.anthropic_messages import usage as messages_usage
from adapters.gemini import finish as gemini_finish
from adapters.gemini import table as gemini
from adapters.gemini import usage as gemini_usage
from adapters.gemini_interactions import table as interactions
from adapters.ollama import table as ollama
from adapters.openai import usage as openai_usage
from adapters.openai_chat import finish as chat_finish
from adapters.openai_chat import table as chat
from adapters.openai_completions import table as completions
from adapters.openai_responses import table as responses
from adapters.openai_responses import usage as responses_usage
from gateway.adapter import Adapter
from gateway.core.conversation import ChoiceWord, Conversation, Json, NamedTool, Role, Sampling, Text, ToolSpec, Turn
from gateway.core.errors import Unsupported
from gateway.core.events import Finish, Reason, UsageReport
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.registry import load_adapters, load_dialect
from gateway.settings import parse_settings
from gateway.wires.table import APART, Parameter, RequestTable, Words, reported
from tests.paths import ROOT

HEADER: Final = "| field | handling | how |\n| --- | --- | --- |\n"
TABLES: Final[Mapping[str, RequestTable]] = {
    "anthropic_messages": messages.TABLE,
    "gemini": gemini.TABLE,
    "gemini_interactions": interactions.TABLE,
    "openai_responses": responses.TABLE,
    "openai_chat": chat.TABLE,
    "openai_completions": completions.TABLE,
    "ollama": ollama.CHAT,
    "ollama_generate": ollama.GENERATE,
}
# The tables whose rows the page of a dialect has.
PAGES: Final[Mapping[str, tuple[RequestTable, ...]]] = {
    "anthropic_messages": (messages.TABLE,),
    "gemini": (gemini.TABLE,),
    "gemini_interactions": (interactions.TABLE,),
    "openai_responses": (responses.TABLE,),
    "openai_chat": (chat.TABLE,),
    "openai_completions": (completions.TABLE,),
    "ollama": (ollama.CHAT, ollama.GENERATE),
}
BACKEND_PAGES: Final = {
    "anthropic_messages": "messages-backends.md",
    "gemini": "gemini-backends.md",
    "openai_responses": "responses-backends.md",
}
# The wires that are spoken on both sides.
BOTH: Final = ("anthropic_messages", "gemini", "openai_chat", "openai_responses")
EFFORT: Final = "reasoning_effort"
EFFORTS: Final = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
WORDS: Final[Mapping[str, tuple[Words[Any], frozenset[Any]]]] = {
    "gemini.modes": (gemini.MODES, frozenset(get_args(ChoiceWord))),
    "gemini.roles": (gemini.ROLES, frozenset(get_args(Role)) - {"system", "developer"}),
    "gemini.reasons": (gemini_finish.REASONS, frozenset(get_args(Reason))),
    "gemini_interactions.modes": (interactions.MODES, frozenset(get_args(ChoiceWord))),
    "gemini_interactions.statuses": (interactions.STATUSES, frozenset(get_args(Reason))),
    "openai_responses.incomplete": (responses.INCOMPLETE, frozenset({"length", "content_filter"})),
    "openai_responses.choices": (responses.CHOICES, frozenset(get_args(ChoiceWord))),
    "gemini.tiers": (gemini.TIERS, frozenset({"default", "flex", "priority"})),
    "openai_chat.choices": (chat.CHOICES, frozenset(get_args(ChoiceWord))),
    "openai_chat.reasons": (chat_finish.REASONS, frozenset(get_args(Reason))),
    "openai_chat.roles": (chat.ROLES, frozenset(get_args(Role))),
    "ollama.reasons": (ollama.DONE_REASONS, frozenset(get_args(Reason))),
    "anthropic_messages.choices": (messages.CHOICES, frozenset(get_args(ChoiceWord))),
    "anthropic_messages.efforts": (messages.EFFORTS, EFFORTS - {"none"}),
    "anthropic_messages.errors": (messages.ERRORS, frozenset({*messages.ERRORS.values.values(), 503})),
    "anthropic_messages.reasons": (messages_finish.STOP_REASONS, frozenset(get_args(Reason))),
    "anthropic_messages.roles": (messages.ROLES, frozenset(get_args(Role))),
    "anthropic_messages.tiers": (messages.TIERS, frozenset({"auto", "default", "priority", "standard_only"})),
}

tables = pytest.mark.parametrize("name", TABLES)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_the_rows_of_the_table(name: str, rewrite_golden: bool) -> None:
    page = ROOT / "docs" / "dialects" / f"{name}.md"
    before, header, rest = page.read_text(encoding="utf-8").partition(HEADER)
    written, behind = rest.partition("\n\n")[::2]
    rows = "\n".join(dict.fromkeys(row for table in PAGES[name] for row in table.docs_rows()))
    if rewrite_golden:
        page.write_text(f"{before}{header}{rows}\n\n{behind}", encoding="utf-8", newline="\n")
    else:
        assert written == rows


@pytest.mark.parametrize("name", BACKEND_PAGES)
def test_the_page_of_backends_names_what_a_client_of_another_api_can_send(name: str) -> None:
    page = (ROOT / "docs" / BACKEND_PAGES[name]).read_text(encoding="utf-8")
    table = page.partition("| field | sent as |\n")[2].partition("\n\n")[0]
    fields = {field for row in table.splitlines()[1:] for field in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert fields - {"tools", "model"} == TABLES[name].supported - {"model"}


# Rules of providers about single fields, signs of a client's API, the published answers, an answer that repeats them.
ELSEWHERE: Final = frozenset(
    {"dialect.py", "request_fields.py", "response_models.py", "response_object.py", "thinking.py"}
)
# The same words of other places: a role, a reason, the format of a tool, what a message, a block or an answer has, what
# asks a backend for its state.
HOMONYMS: Final[Mapping[str, frozenset[str]]] = {
    "anthropic_messages": frozenset({"cache_control"}),
    "openai_chat": frozenset({"audio", "logprobs", "max_tokens", "service_tier", "stop", "user"}),
    "openai_completions": frozenset({"stop", "user"}),
    "openai_responses": frozenset({"format", "include", "user"}),
}


@pytest.mark.parametrize("name", PAGES)
def test_no_other_module_of_a_wire_names_a_field_that_a_loop_reads_and_writes(name: str) -> None:
    rows = [row for table in PAGES[name] for row in table.rows]
    fields = {
        row.field for row in rows if row.parameter.name and APART not in (row.parameter.read, row.parameter.write)
    }
    assert {"temperature", "seed", "top_p"} & fields
    fields -= HOMONYMS.get(name, frozenset())
    modules = [path for path in (ROOT / "adapters" / name).rglob("*.py") if path.name not in ELSEWHERE | {"table.py"}]
    sides = [path for path in modules if "demo" not in path.parts]
    assert [(path.name, found) for path in sides if (found := fields & set(_texts(path)))] == []


def _texts(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@tables
def test_a_further_row_is_all_that_a_further_parameter_needs(name: str) -> None:
    kind = TABLES[name].kind
    row = Annotated[float | None, Parameter("novelty", "of the answer")]
    table = RequestTable(msgspec.defstruct("More", [("novelty", row, None)], bases=(kind,), frozen=True, kw_only=True))
    assert "novelty" not in TABLES[name].supported | TABLES[name].names
    fields = {field: "m" if field == "model" else None for field in kind.__struct_encode_fields__}
    read = table.sections[""].read(msgspec.convert({**fields, "novelty": 0.5}, table.kind))
    assert read["novelty"] == 0.5
    assert table.sections[""].write(Conversation((), params={"novelty": 0.5}))["novelty"] == 0.5
    assert table.paths["novelty"] == "novelty"
    assert {"novelty"} == table.supported - TABLES[name].supported == table.names - TABLES[name].names
    assert "| `novelty` | honoured | of the answer |" in table.docs_rows()


def test_a_field_without_a_row_is_no_table() -> None:
    kind = msgspec.defstruct("Lacking", [("novelty", float | None, None)])
    with pytest.raises(TypeError, match=r"Lacking\.novelty has no Parameter"):
        RequestTable(kind)


def test_a_row_beside_the_type_is_written_and_reported() -> None:
    kind = msgspec.defstruct("Lacking", [("model", Annotated[str | None, Parameter("model")], None)])
    table = RequestTable(kind, {"tier": Parameter("service_tier"), "edits": reported(None)})
    assert table.sections[""].read(table.kind()) == {}
    assert table.sections[""].write(Conversation((), params={"service_tier": "flex"})) == {"tier": "flex"}
    assert table.sections[""].unsent({"model": "m", "tier": 1, "edits": 2, "news": 3}) == ["edits", "news"]
    assert table.docs_rows() == ("| `model` | honoured | |", "| `tier` | honoured | |")


@pytest.mark.parametrize("name", WORDS)
def test_each_word_that_is_written_is_read_back(name: str) -> None:
    words, values = WORDS[name]
    assert words.words.keys() == values
    own = set(words.values.values())
    assert [value for value in own if words.values[words.words[value]] != value] == []
    # A value without a word of its own has the nearest one, which the wire knows.
    assert [value for value in values - own if words.words[value] not in words.values] == []


FUNCTION: Final = ToolSpec("look", "", {"type": "object", "properties": {}})
LIMITS: Final = st.integers(64, 2**31 - 1)
SHARE: Final = st.floats(0, 1, allow_nan=False, width=16)
SCHEMA: Final[dict[str, Json]] = {"type": "object", "properties": {"a": {"type": "string"}}}
# What clients of any API may ask for, by canonical names. Values that a wire cannot have are among them.
ASKED: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    "audio": st.just({"voice": "a", "format": "mp3"}),
    "cache_control": st.sampled_from(({"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"})),
    "frequency_penalty": SHARE,
    "logit_bias": st.dictionaries(st.sampled_from(("1", "2")), SHARE, min_size=1),
    "max_tokens": LIMITS,
    "metadata": st.dictionaries(st.text("ab", min_size=1), st.text("ab"), min_size=1),
    "modalities": st.just(["text", "audio"]),
    "parallel_tool_calls": st.booleans(),
    "prediction": st.just({"type": "content", "content": "a"}),
    "presence_penalty": SHARE,
    "prompt_cache_key": st.text("ab", min_size=1),
    "prompt_cache_options": st.sampled_from(({"mode": "explicit"}, {"mode": "implicit", "ttl": "30m"})),
    "prompt_cache_retention": st.sampled_from(("in_memory", "24h")),
    "reasoning_effort": st.sampled_from((*sorted(EFFORTS), "novel")),
    "response_format": st.sampled_from(
        (
            {"type": "json_object"},
            {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
        )
    ),
    "safety_identifier": st.text("ab", min_size=1),
    "seed": st.integers(0, 2**31 - 1),
    "service_tier": st.sampled_from(("default", "flex", "priority", "novel")),
    "stop": st.lists(st.text("abc", min_size=1), min_size=1, max_size=4),
    "store": st.booleans(),
    "temperature": SHARE,
    "tool_choice": st.sampled_from((*get_args(ChoiceWord), NamedTool("look"))),
    "top_k": st.integers(1, 100),
    "top_p": SHARE,
    "user": st.text("abc", min_size=1, max_size=80),
    "verbosity": st.sampled_from(("low", "medium", "high")),
    "web_search_options": st.just({"search_context_size": "low"}),
}
# A schema has a name at OpenAI, which is added where it lacks, and no place for one at Gemini.
NAMED: Final = st.sampled_from(
    (
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
        {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "description": "b"}},
    )
)
# Where the values of a wire are others.
ASKED_OF: Final[Mapping[tuple[str, str], st.SearchStrategy[Any]]] = {
    ("openai_chat", "response_format"): NAMED,
    ("openai_responses", "response_format"): NAMED,
}
# Further names of a field that has one, and what stands in no body.
OTHERS: Final = frozenset({"max_completion_tokens", "model", "thinking"})


@cache
def adapter(name: str) -> Adapter:
    entry = {"adapter": name, "base_url": "https://b"}
    settings = parse_settings(json.dumps({"backends": {"b": entry}, "models": {"m": {"backend": "b"}}}))
    return load_adapters(settings)["b"]


def round_trip(name: str, model: str, asked: Mapping[str, Any]) -> tuple[Conversation, tuple[Notice, ...]]:
    """What a gateway with this wire in front of it reads of what one with this wire behind it has sent."""
    params = {field: value for field, value in asked.items() if field != "tool_choice"}
    limits = {field: asked[field] for field in ("temperature", "top_p", "max_tokens", "seed") if field in asked}
    conversation = Conversation(
        (Turn("user", (Text("Hello"),), index=0),),
        (FUNCTION,),
        asked.get("tool_choice", "auto"),
        asked.get("parallel_tool_calls", True),
        model=model,
        sampling=Sampling(**limits, stop=tuple(asked.get("stop", ()))),
        params=params,
        # A backend of the client's own API gets the fields as they were written.
        dialect="gemini" if name == "openai_chat" else "openai_chat",
    )
    request = adapter(name).encode(conversation, Policy())
    head = RequestHead(f"/v1beta{request.path}" if name == "gemini" else request.path)
    decoded = load_dialect(name).decode(Document(json.loads(request.body)), head).conversation
    return decoded, (*request.notices, *decoded.notices)


@pytest.mark.parametrize("name", BOTH)
def test_each_supported_name_has_values_here(name: str) -> None:
    assert TABLES[name].supported - OTHERS <= ASKED.keys()


# The models of which the effort depends.
MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "gemini": ("gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3-flash"),
}
CASES: Final = [
    (name, model, field)
    for name in BOTH
    for field in sorted(TABLES[name].supported - OTHERS)
    for model in (MODELS.get(name, ("model",)) if field == "reasoning_effort" else ("model",))
]


@pytest.mark.parametrize(("name", "model", "field"), CASES)
@given(data=st.data())
def test_a_parameter_comes_back_or_a_notice_names_what_was_sent(
    name: str, model: str, field: str, data: st.DataObject
) -> None:
    value = data.draw(ASKED_OF.get((name, field), ASKED[field]))
    try:
        back, notices = round_trip(name, model, {field: value})
    except Unsupported as error:
        assert error.param == field
        return
    details = [notice.detail for notice in notices if notice.action in ("changed", "dropped")]
    found = read_back(back, field)
    if found != value:
        assert details
        assert any(str(one) in detail for detail in details for one in (field, value, found))
    elif field in Sampling.__struct_fields__ and not details:
        sampled = getattr(back.sampling, field)
        assert (list(sampled) if field == "stop" else sampled) == value


# What each of the other efforts becomes is the nearest that the wire has, and so a notice tells of it.
KEPT: Final = [
    ("anthropic_messages", "model", {"none", "low", "medium", "high", "xhigh", "max"}),
    ("openai_chat", "model", EFFORTS),
    ("gemini", "gemini-2.5-flash", {"none", "low", "medium", "high"}),
    ("gemini", "gemini-2.5-pro", {"low", "medium", "high"}),
    ("gemini", "gemini-3-pro-preview", {"low", "medium", "high"}),
    ("gemini", "gemini-3-flash", {"minimal", "low", "medium", "high"}),
]


@pytest.mark.parametrize(("name", "model", "kept"), KEPT)
def test_the_efforts_that_a_wire_has_come_back(name: str, model: str, kept: set[str]) -> None:
    back = {effort: read_back(round_trip(name, model, {EFFORT: effort})[0], EFFORT) for effort in EFFORTS}
    assert {effort for effort in EFFORTS if back[effort] == effort} == kept
    assert all(back.values())


def read_back(back: Conversation, field: str) -> Any:
    """What a decoded request asks for by this name."""
    value = back.params.get(field)
    match field, value:
        case "tool_choice" | "parallel_tool_calls", _:
            return getattr(back, field)
        case "reasoning_effort", None:
            # The words of this API for no effort.
            return "none" if back.params.get("thinking") == {"type": "disabled"} else None
        case "response_format", {"json_schema": dict(said), **others}:
            # Some APIs hold every schema strictly.
            return {**others, "json_schema": {one: said[one] for one in said if one != "strict"}}
        case _:
            return value


COUNTS: Final = st.integers(0, 2**40)


def report(uncached: int, said: int, total: int | None, **parts: int) -> UsageReport:
    """Counts that include their parts."""
    prompt: dict[str, Json] = {name: parts[name] for name in ("cached_tokens", "cache_write_tokens") if name in parts}
    extra: dict[str, Json] = {
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {"reasoning_tokens": parts["reasoning_tokens"]},
    }
    return UsageReport(
        uncached + parts["cached_tokens"] + parts.get("cache_write_tokens", 0),
        said + parts["reasoning_tokens"],
        total,
        extra=extra,
    )


@given(uncached=COUNTS, said=COUNTS, total=COUNTS, cached=COUNTS, thought=COUNTS)
def test_counts_of_gemini_come_back(uncached: int, said: int, total: int, cached: int, thought: int) -> None:
    usage = report(uncached, said, total, cached_tokens=cached, reasoning_tokens=thought)
    assert gemini_usage.decode_usage(gemini_usage.usage_object(usage)) == usage


@given(uncached=COUNTS, said=COUNTS, cached=COUNTS, written=COUNTS, thought=COUNTS)
def test_counts_of_messages_come_back(uncached: int, said: int, cached: int, written: int, thought: int) -> None:
    parts = {"cached_tokens": cached + 1, "cache_write_tokens": written + 1, "reasoning_tokens": thought + 1}
    usage = report(uncached, said, None, **parts)
    counts = messages_usage.TokenCounts()
    counts.add(messages_usage.usage_object(usage))
    assert counts.report(ended=True) == usage


@given(asked=COUNTS, said=COUNTS, cached=COUNTS, written=COUNTS, thought=COUNTS)
def test_counts_of_chat_come_back(asked: int, said: int, cached: int, written: int, thought: int) -> None:
    parts = {"cached_tokens": cached, "cache_write_tokens": written, "reasoning_tokens": thought}
    usage = report(asked, said, asked + said + cached + written + thought, **parts)
    assert openai_usage.decode_usage(openai_usage.usage_object(usage)) == usage


@pytest.mark.parametrize("reason", get_args(Reason))
def test_a_finish_reason_comes_back(reason: Reason) -> None:
    word = gemini_finish.finish_word(Finish(reason))
    found, notice = gemini_finish.decode_finish(word, called=reason == "tool_calls", passes=False)
    assert (found, notice) == (Finish(reason, word), None)
    # The words of chat completions are those of the core.
    assert chat_finish.decode_finish(reason, None) == (Finish(reason, chat_finish.REASONS.words[reason]), None)
    fields = messages_finish.final_fields(Finish(reason))
    assert messages_finish.decode_finish(str(fields["stop_reason"]), fields["stop_sequence"])[0].reason == reason


@pytest.mark.parametrize("word", gemini_finish.REASONS.values)
def test_a_finish_word_of_gemini_comes_back(word: str) -> None:
    found, notice = gemini_finish.decode_finish(word, called=False, passes=False)
    assert notice is None
    assert gemini_finish.finish_word(found) == word


@pytest.mark.parametrize("word", messages_finish.STOP_REASONS.values)
def test_a_finish_word_of_messages_comes_back_between_the_same_api(word: str) -> None:
    found, _ = messages_finish.decode_finish(word, "END" if word == "stop_sequence" else None)
    own = {"stop_reason": word, "stop_sequence": found.stop_sequence}
    assert messages_finish.final_fields(found, own) == own


def test_a_stop_sequence_of_messages_comes_back() -> None:
    found, _ = messages_finish.decode_finish("stop_sequence", "END")
    assert messages_finish.final_fields(found) == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


@given(prompt=COUNTS, cached=COUNTS, written=COUNTS, said=COUNTS, thought=COUNTS)
def test_counts_of_responses_come_back(prompt: int, cached: int, written: int, said: int, thought: int) -> None:
    report = UsageReport(
        prompt,
        said,
        prompt + said,
        extra={
            "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
            "completion_tokens_details": {"reasoning_tokens": thought},
        },
    )
    assert responses_usage.decode_usage(responses_usage.usage_object(report)) == report
