"""Each concept that once had several homes has one: a second one fails here.

Every test reads the sources of the packages; what it looks for is what a second home would have to contain.
"""

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

import pytest

from gateway.demo.faults.catalogue import FAULTS
from gateway.demo.faults.fault import Fault
from gateway.demo.lab.apis import LAB_APIS
from gateway.providers.registry import PROVIDERS
from gateway.testing.layering import SIDES
from tests.paths import ROOT

WIRES: Final = tuple(
    sorted({path.parent.name for path in ROOT.glob("adapters/*/*/") if path.name in ("client", "backend")})
)
TEXTS: Final = frozenset({"TextDelta", "ReasoningDelta"})
CALLS: Final = frozenset({"ToolCallStart", "ToolCallDelta", "ToolCallEnd"})
# Who asks of an event whether it is a text, reasoning or a part of a call.
EVENT_READERS: Final = {
    # Adds events up.
    "gateway/core/answer.py:AnswerReader",
    # Write them one by one; the blocks of three APIs follow one another.
    "adapters/anthropic_messages/blocks.py:block_event",
    "adapters/anthropic_messages/client/stream.py:MessageStreamEncoder",
    "adapters/gemini/client/stream.py:GeminiStreamEncoder",
    "adapters/gemini_interactions/client/stream.py:InteractionStreamEncoder",
    "adapters/ollama/client/stream.py:OllamaStreamEncoder",
    "adapters/openai_chat/client/stream.py:ChatStreamEncoder",
    "adapters/openai_responses/client/stream.py:ResponsesStreamEncoder",
    "gateway/dialects/sequential_blocks.py:SequentialBlocks",
    # Let them pass, change them or count them.
    "gateway/exchange/hidden_rounds.py:HiddenCallFilter",
    "gateway/response/role_marker_filter.py:RoleMarkerFilter",
    "gateway/response/stop_sequences.py:StopMatcher",
    "gateway/response/usage_estimate.py:_texts",
    # Learns how a backend writes a delta.
    "adapters/openai_chat/backend/delta_fast_path.py:DeltaFastPath",
    # Joins neighbouring deltas, so that two lists of events can be compared.
    "gateway/testing/events.py:join",
}
# What several wires are built of.
SHARED: Final = frozenset({"openai"})
SOURCES: Final = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for package in ("gateway", "adapters")
    for path in sorted((ROOT / package).rglob("*.py"))
    if not path.stem.endswith("_pb2")
}


# The names of providers that name something else as well: an API, a preset of a wire, a counter of tokens, an option.
SHARED_NAMES: Final = frozenset(
    {"anthropic", "gemini", "kimi", "koboldcpp", "ollama", "openai", "sglang", "tgi", "together", "vllm", "xai"}
)


@cache
def syntax(source: str) -> ast.Module:
    return ast.parse(source)


def places(pattern: str) -> set[str]:
    """The modules whose code contains the pattern."""
    words = re.compile(pattern)
    return {name for name, source in SOURCES.items() if words.search(source)}


def raised(error: str) -> set[str]:
    """The modules that construct this error."""
    return {
        name
        for name, source in SOURCES.items()
        if error in source
        for node in ast.walk(syntax(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == error
    }


def texts(source: str) -> set[str]:
    """The texts in a module, without its docstrings."""
    tree = syntax(source)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
    }


def test_a_wire_has_one_folder_and_one_spelling() -> None:
    folders = {path.parent.name for path in ROOT.glob("adapters/*/__init__.py")}
    assert folders == {*WIRES, *SHARED}
    named = "|".join([*WIRES, "chat", "messages", "responses", "completions", "agent", "grpc"])
    for package in ("gateway", "adapters"):
        again = [
            str(path.relative_to(ROOT))
            for path in (ROOT / package).rglob("__init__.py")
            if re.fullmatch(named, path.parent.name) and path.parent.parent != ROOT / "adapters"
        ]
        assert again == []


# What a wire has for its operator beside its sides: the proposal of a mapping, which tries the adapter's own parts.
TOOLS: Final[dict[str, set[str]]] = {"proto": {"learn"}}


@pytest.mark.parametrize("wire", WIRES)
def test_the_folder_of_a_wire_has_its_sides(wire: str) -> None:
    folder = ROOT / "adapters" / wire
    sides = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert sides - TOOLS.get(wire, set()) <= set(SIDES)
    assert "client" in sides or {"backend", "demo"} <= sides


@pytest.mark.parametrize("wire", ["anthropic_messages", "gemini", "openai_chat", "openai_responses"])
def test_the_routes_of_a_wire_stand_in_its_table(wire: str) -> None:
    """What clients ask at the gateway is what the gateway asks at a backend of the same API."""
    table = vars(importlib.import_module(f"adapters.{wire}.table"))
    routes = {table[name] for name in ("GENERATE_PATH", "MODELS_PATH", "GENERATE", "STREAM", "COUNT") if name in table}
    sides = (f"adapters/{wire}/client/", f"adapters/{wire}/backend/")
    again = {
        name: found
        for name, source in SOURCES.items()
        if name.startswith(sides)
        if (found := {text for text in texts(source) if text.removeprefix("/v1") in routes})
    }
    assert again == {}


def test_a_secret_has_one_catalogue() -> None:
    """Prefixes of keys stand in no other module."""
    assert places(r"ghp_|AKIA|xox\[|glpat-|-----BEGIN") == {"gateway/core/secrets.py"}


def test_tokens_have_one_estimate() -> None:
    assert places(r"\bdef _?estimate_(?:text|turn|image|document|tools)\b") == {"gateway/core/tokens.py"}
    assert places(r"\) // 4\b(?! \*)|\bTOKEN_BYTES\b|_PER_TOKEN\b") == set()


def test_a_data_url_has_one_reader() -> None:
    """No other module looks for the word in front of the data, or writes it behind a media type."""
    assert places(r"""\};base64,|["'];?base64,?["'] in|tition\(["'];?base64""") == {"gateway/core/data_url.py"}


def test_the_sentences_of_msgspec_have_one_reader() -> None:
    """Clients and authors of settings get their own sentence, from parts that no other module reads."""
    assert places(r"""Expected `(?:int|str|array|object|\(\[)|" - at `|missing required field""") == {
        "gateway/core/wrong_value.py"
    }


def test_an_answer_that_ends_without_its_end_is_told_by_its_exchange() -> None:
    """Who drives an exchange asks it for the end, and decides nothing."""
    drivers = {
        "gateway/server/api/relay.py",
        "gateway/server/upstream/completion.py",
        "gateway/recording/offline_run.py",
    }
    assert places(r"\bexchange\.(?:end|check_complete)\(") == drivers
    assert raised("BackendTruncated") & drivers == {"gateway/recording/offline_run.py"}


def test_a_credential_that_was_refused_is_renewed_in_one_place() -> None:
    assert places(r"\.refreshed?\(|\brefresh\(") == {"gateway/server/upstream/credentials.py"}


def test_a_fault_of_a_backend_is_in_the_catalogue() -> None:
    """Faults are made by the demo of their wire, or for all wires in `gateway/demo/faults/`, and listed there."""
    made = {name for name in raised("Fault") if not name.startswith("gateway/demo/faults/")}
    assert all(re.fullmatch(r"adapters/\w+/demo/\w+\.py", name) for name in made)
    listed = {name for faults in FAULTS.values() for name in faults}
    # What no backend does, and only the laboratory plays.
    listed |= {name for api in LAB_APIS.values() for name in api.own}
    for place in made | {name for name in SOURCES if name.startswith("gateway/demo/faults/")}:
        tables = vars(importlib.import_module(place.removesuffix(".py").replace("/", "."))).values()
        named = {
            name for table in tables if isinstance(table, Mapping) for name in table if isinstance(table[name], Fault)
        }
        assert named <= listed, place
    assert made


def test_what_is_kept_of_a_request_has_five_nouns() -> None:
    """Recent requests, captures, known requests, contents, watchers; no module names a further one."""
    modules = {path.stem for path in (ROOT / "gateway/server/inspect").glob("*.py")}
    assert {name for name in modules if re.search("entry|entries|ring|ended|live|captured$", name)} == set()


def test_only_observers_carry_what_is_captured() -> None:
    """The path of a request asks for no capture: what is kept joins its observers."""
    assert {name for name in places(r"context\.capture\b|\bcapture is (?:not )?None")} <= {
        name for name in SOURCES if name.startswith("gateway/server/inspect/")
    }


def test_a_provider_has_one_file() -> None:
    """Its names and its hosts stand in no other place; a kind of secrets has the name of who gives them out."""
    names = {name for provider in PROVIDERS for name in (provider.name, *provider.profiles)} - SHARED_NAMES
    hosts = {host.rpartition("*")[2] for provider in PROVIDERS for host in provider.hosts}
    again = {
        place: found
        for place, source in SOURCES.items()
        if not place.startswith("gateway/providers/") and place != "gateway/core/secrets.py"
        if any(word in source for word in (*hosts, *(f'"{name}"' for name in names)))
        if (found := {text for text in texts(source) if text in names or any(host in text for host in hosts)})
    }
    assert again == {}


def test_events_are_added_up_in_one_place() -> None:
    """Any other module that takes texts and calls apart is listed, and adds nothing up."""
    readers = {
        f"{name}:{part.name}"
        for name, source in SOURCES.items()
        if any(kind in source for kind in CALLS)
        for part in syntax(source).body
        if isinstance(part, ast.ClassDef | ast.FunctionDef)
        and len(asked := asked_for(part)) > 2
        and asked & TEXTS
        and asked & CALLS
    }
    assert readers == EVENT_READERS
    assert places(r"\bdef _?merge_usage\b") == {"gateway/core/answer.py"}


def asked_for(part: ast.AST) -> set[str]:
    """The classes of events by which a class or a function tells events apart."""
    found: set[str] = set()
    for node in ast.walk(part):
        match node:
            case ast.Compare(comparators=[*classes]) | ast.Call(func=ast.Name("isinstance"), args=[_, *classes]):
                pass
            case ast.MatchClass(cls=only):
                classes = [only]
            case _:
                continue
        found |= {name.id for one in classes for name in ast.walk(one) if isinstance(name, ast.Name)}
    return found & (TEXTS | CALLS)


# A function, and the module in which alone it may stand.
HOMES = {
    "is_system": "gateway/core/conversation.py",
    "index_of": "gateway/core/conversation.py",
    "system_prefix": "gateway/history/classify.py",
    "text_in": "gateway/wires/json_body.py",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    return ((name, syntax(source)) for name, source in SOURCES.items())


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def work(function: ast.FunctionDef) -> str:
    """What a function does, without its name, its description and the names of its arguments."""
    body = ast.Module(function.body if ast.get_docstring(function) is None else function.body[1:], [])
    written = ast.dump(body)
    for at, argument in enumerate(function.args.args):
        written = written.replace(f"Name(id='{argument.arg}'", f"Name(id='argument {at}'")
    return written


@cache
def homes_by_work() -> Mapping[str, list[str]]:
    """The modules of every function, by what it does."""
    found: dict[str, list[str]] = {}
    for name, tree in modules():
        for function in functions(tree):
            found.setdefault(work(function), []).append(name)
    return found


@pytest.mark.parametrize("name", HOMES)
def test_a_function_that_many_need_has_no_copy(name: str) -> None:
    home = ast.parse((ROOT / HOMES[name]).read_text(encoding="utf-8"))
    (wanted,) = (work(one) for one in functions(home) if one.name == name)
    assert homes_by_work()[wanted] == [HOMES[name]]


def test_the_roles_of_system_text_are_listed_once() -> None:
    found = [path for path, tree in modules() for node in ast.walk(tree) if _lists_system_roles(node)]
    assert found == ["gateway/core/conversation.py"]


def _lists_system_roles(node: ast.AST) -> bool:
    """A type has them in the other order: the value of a setting."""
    if not isinstance(node, ast.Tuple | ast.Set | ast.List):
        return False
    return [one.value for one in node.elts if isinstance(one, ast.Constant)] == ["system", "developer"]


def test_what_is_reported_once_is_remembered_in_one_way() -> None:
    """`Reported.is_new` asks and remembers; a set beside it would be asked and then told."""
    found = [
        path
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and _asks_and_adds(node) and "Notice(" in ast.unparse(node)
    ]
    assert found == []


def _asks_and_adds(node: ast.If) -> bool:
    first = ast.unparse(node.body[0])
    sets = {ast.unparse(one.comparators[0]) for one in ast.walk(node.test) if isinstance(one, ast.Compare)}
    return any(first.startswith((f"{one}.add(", f"{one} |= ")) for one in sets)


def test_a_copy_is_seen() -> None:
    copy = ast.parse('def _text(said):\n    "Any."\n    return said if isinstance(said, str) and said else None')
    home = ast.parse((ROOT / HOMES["text_in"]).read_text(encoding="utf-8"))
    assert [work(one) for one in functions(copy)] == [work(one) for one in functions(home) if one.name == "text_in"]


def test_a_stream_is_read_up_to_its_end_by_one_loop() -> None:
    """Whose frames are messages of protobuf has an end of its own grammar."""
    binary = {"adapters/warp/backend/decode/decoder.py", "adapters/proto/backend/frames.py"}
    assert places(r"\.tail\(\)") == {"gateway/wires/event_stream.py"} | binary
    assert places(r"_OPENS_JSON\b|EVENTS_PER_RESPONSE: Final") == {"gateway/wires/event_stream.py"}


def test_what_comes_behind_the_end_of_a_response_has_one_text() -> None:
    named = {"gateway/server/telemetry/request_metrics.py", "gateway/core/notices.py", "gateway/core/requirements.py"}
    assert places(r"\"LATE_FAULT\"") - named == {"gateway/core/malformed_event.py"}
    assert places(r"an incomplete event after the end") == {"gateway/core/malformed_event.py"}
    assert places(r"The backend's response is empty") == {"gateway/wires/event_stream.py"}


def test_the_states_of_a_client_s_stream_have_one_table() -> None:
    assert places(r"\bSTREAM_TRANSITIONS: ") == {"gateway/dialects/stream_state.py"}
    assert places(r"class StreamState\b") == {"gateway/dialects/stream_state.py"}


def test_what_a_decoder_or_a_dialect_has_beside_its_contract_is_read_once() -> None:
    """No other module looks for it by a name, and none casts to it."""
    optional = "Holding|HeadDecoder|TrailerDecoder|StatefulDialect|StoringEncoder|CountingDialect|ListingAdapter"
    assert places(rf"\bcast\(\"?(?:{optional})\b") == set()
    assert places(r"hasattr\(\S+, \"(?:progress|head|trailers|encode_count|missing_entries)\"") == set()
    assert places(r"isinstance\(\w+, (?:Holding|HeadDecoder|TrailerDecoder)\)") == {"gateway/adapter.py"}
    assert places(r"isinstance\(\w+, (?:StatefulDialect|CountingDialect)\)") == {"gateway/dialects/route_table.py"}
