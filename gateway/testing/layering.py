"""Checks the import rules: one table defines which package may import what.

Imports run one way, `server -> core <- adapters`. The core is sans-IO: no sockets, clock, ids, logger or environment.
Only imports that the interpreter would execute count, and imports for type checkers count as well.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

# Standard modules that do IO, read a clock or generate random numbers. `urllib.parse` does neither.
IO: Final = frozenset(
    {"asyncio", "concurrent", "ftplib", "http", "logging", "multiprocessing", "os", "queue", "random", "secrets"}
    | {"select", "selectors", "signal", "smtplib", "socket", "socketserver", "ssl", "subprocess", "tempfile"}
    | {"threading", "time", "urllib.request", "uuid"}
)


class ImportRule(msgspec.Struct, frozen=True):
    """The imports that a package and everything below it may use, besides itself.

    `gateway` lists the project's packages by prefix, `others` the distributions' packages by prefix; None: any of them.
    `io` lists the permitted IO modules; None: all of them. `*` in a package stands for the name of any wire. A side of
    a wire (`client`, `backend`, `demo`) may import what its wire has beside the sides, and never another side.
    """

    package: str
    gateway: tuple[str, ...] | None = ()
    others: tuple[str, ...] | None = ("msgspec",)
    io: tuple[str, ...] | None = ()


def _ours(names: str) -> tuple[str, ...]:
    return tuple(f"gateway.{name}" for name in names.split())


_VALUES: Final = (
    "core.answer core.context_length core.conversation core.field_paths core.events core.notices core.errors"
    " core.model_facts core.policy core.provider_state core.sealed_compaction core.state_rule providers.messages_rules"
    " providers.profile providers.cache_rules providers.request_rules providers.tool_rules core.wrong_value"
)

ADAPTER: Final = _ours("core adapter history providers response tool_calls framing wires")
DIALECT: Final = (
    *_ours(f"{_VALUES} core.call_arguments core.data_url core.rules core.tokens"),
    *_ours("framing dialect dialects"),
)
_PARTS: Final = ("adapters.openai.backend_errors", "adapters.openai.usage", *_ours("protobuf"))
_OPENAI: Final = tuple(f"adapters.openai.{name}" for name in ("client_errors", "fields", "models", "usage"))


def _responses(names: str) -> tuple[str, ...]:
    return tuple(f"adapters.openai_responses.{name}" for name in names.split())


# The rule with the longest matching package applies.
RULES: Final[tuple[ImportRule, ...]] = (
    ImportRule("gateway", gateway=None),
    ImportRule("gateway.core"),
    ImportRule("gateway.core.field_paths"),
    ImportRule("gateway.core.state_rule"),
    ImportRule("gateway.core.conversation", _ours("core.field_paths core.notices core.state_rule")),
    ImportRule("gateway.core.provider_state", _ours("core.conversation")),
    ImportRule("gateway.core.notices"),
    ImportRule("gateway.core.requirements", _ours("core.notices")),
    ImportRule("gateway.core.sealed_compaction", _ours("core.conversation core.errors core.provider_state")),
    ImportRule("gateway.core.events", _ours("core.notices core.conversation")),
    ImportRule("gateway.core.context_length", _ours("core.conversation")),
    ImportRule("gateway.core.errors", _ours("core.context_length core.events core.notices core.conversation")),
    ImportRule("gateway.core.policy", _ours("core.conversation providers.profile")),
    ImportRule("gateway.core.grammar", _ours("core.events core.notices")),
    ImportRule("gateway.core.answer", _ours("core.conversation core.events core.notices")),
    ImportRule("gateway.core.secrets", _ours("core.escapes")),
    ImportRule("gateway.core.data_url", _ours("core.errors")),
    ImportRule("gateway.core.image_size"),
    ImportRule("gateway.core.session", _ours("core.notices core.secrets")),
    ImportRule("gateway.core.tokens", _ours("core.conversation core.data_url core.image_size")),
    ImportRule(
        "gateway.core.backend_status",
        _ours("core.context_length core.conversation core.notices core.errors core.secrets"),
    ),
    ImportRule("gateway.core.malformed_event", _ours("core.errors core.notices")),
    ImportRule("gateway.providers", _ours("core.notices core.state_rule")),
    ImportRule("gateway.providers.messages_rules"),
    ImportRule("gateway.providers.cache_rules"),
    ImportRule("gateway.providers.request_rules", _ours("providers.cache_rules")),
    ImportRule("gateway.providers.tool_rules"),
    ImportRule(
        "gateway.providers.profile",
        _ours("core.state_rule providers.messages_rules providers.request_rules providers.tool_rules"),
    ),
    ImportRule("gateway.adapter", _ours(f"{_VALUES} core.descriptor_set")),
    ImportRule("gateway.core.json_schema", _ours("core.conversation")),
    ImportRule("gateway.core.rules", _ours("core.conversation core.errors core.field_paths core.notices")),
    ImportRule("gateway.core.call_arguments", _ours("core.conversation framing.json_text")),
    ImportRule("gateway.core.thoughts", _ours("core.conversation")),
    ImportRule(
        "gateway.capabilities",
        _ours(
            f"{_VALUES} core.call_arguments core.data_url core.json_schema core.rules core.tokens adapter"
            " history tool_calls framing"
        ),
    ),
    ImportRule("gateway.framing", _ours("core.errors")),
    ImportRule(
        "gateway.history",
        _ours(
            f"{_VALUES} providers core.call_arguments core.rules core.secrets core.thoughts core.tokens tool_calls"
            " framing"
        ),
    ),
    ImportRule(
        "gateway.memory",
        _ours(f"{_VALUES} core.call_arguments core.secrets core.thoughts core.tokens framing history"),
    ),
    ImportRule("gateway.tool_calls", _ours(f"{_VALUES} framing")),
    ImportRule("gateway.response", _ours(f"{_VALUES} core.call_arguments core.tokens history.transcript framing")),
    ImportRule("gateway.moved"),
    ImportRule("gateway.wires", ADAPTER),
    ImportRule("gateway.dialect", DIALECT),
    ImportRule("gateway.dialects", DIALECT),
    ImportRule(
        "gateway.exchange",
        _ours(
            f"{_VALUES} core.backend_status core.malformed_event core.requirements core.tokens adapter capabilities"
            " history response tool_calls"
        ),
    ),
    ImportRule("gateway.registry", _ours("core adapter settings dialect dialects.route_table")),
    ImportRule(
        "gateway.diagnostics",
        _ours(
            "core adapter capabilities dialect dialects.document exchange history memory providers recording registry"
            " settings"
        ),
    ),
    ImportRule(
        "gateway.inspector",
        _ours(
            "core adapter diagnostics.prompt_cache dialect dialects.document dialects.usage exchange history"
            " memory.history_digest recording registry settings"
        ),
    ),
    ImportRule(
        "gateway.recording",
        _ours("core adapter capabilities dialect dialects.document exchange history registry settings"),
    ),
    ImportRule(
        "gateway.recording.playback",
        _ours("core.conversation demo.player recording"),
        others=("msgspec", "starlette"),
        io=("asyncio",),
    ),
    ImportRule("gateway.recording.files", _ours("core.errors recording"), io=("os",)),
    ImportRule(
        "gateway.protobuf",
        _ours("core.conversation core.errors core.descriptor_set settings.check"),
        others=("msgspec", "google.protobuf"),
    ),
    ImportRule("gateway.settings", _ours(f"{_VALUES} providers core.descriptor_set core.requirements")),
    ImportRule(
        "gateway.settings.descriptor_files",
        _ours(f"{_VALUES} core.descriptor_set settings"),
        io=("subprocess", "tempfile"),
    ),
    ImportRule("gateway.settings.environment", _ours(f"{_VALUES} settings"), io=("os",)),
    ImportRule("gateway.settings.source", _ours("settings"), io=("os",)),
    ImportRule(
        "gateway.connect",
        _ours("core.errors settings"),
        others=("msgspec", "ruamel.yaml", "tomlkit"),
        io=("os", "tempfile"),
    ),
    ImportRule(
        "gateway.discovery",
        _ours("core.conversation providers settings.model_names"),
        others=("httpx", "msgspec"),
        io=("asyncio",),
    ),
    ImportRule("gateway.server", gateway=None, others=None, io=None),
    ImportRule("gateway.server.upstream.http", _ours("core.errors settings server.log"), io=None),
    ImportRule(
        "gateway.server.upstream.http1", _ours("server.upstream.http"), others=("httptools", "msgspec"), io=None
    ),
    ImportRule("gateway.server.upstream.http2", _ours("server.upstream.http"), others=("h2", "msgspec"), io=None),
    ImportRule("gateway.asgi", gateway=None, others=None, io=None),
    ImportRule("gateway.cli", gateway=None, others=None, io=None),
    ImportRule("gateway.commands", gateway=None, others=None, io=None),
    # What learns a mapping is of one adapter.
    ImportRule("gateway.commands.learn", ("gateway", "adapters.proto.learn"), others=None, io=None),
    ImportRule("gateway.__main__", ("gateway.cli",)),
    ImportRule("gateway.demo", _ours("core framing"), others=None, io=None),
    # What lists the demo backends of all wires.
    ImportRule("gateway.demo.faults.catalogue", ("adapters.*.demo", *_ours("demo"))),
    ImportRule(
        "gateway.demo.player.key_check",
        ("adapters.proto.demo.response", *_ours("core demo")),
        others=("starlette",),
    ),
    # What lists the APIs of the laboratory.
    ImportRule(
        "gateway.demo.lab.apis", ("adapters.*.demo", *_ours("core demo")), others=("msgspec", "starlette"), io=None
    ),
    ImportRule("gateway.demo.serve", ("adapters.*.demo", *_ours("core demo framing")), others=None, io=None),
    ImportRule("gateway.local", _ours("core.conversation core.errors"), others=("httpx", "xllamacpp"), io=None),
    ImportRule(
        "gateway.testing",
        gateway=("gateway",),
        others=("msgspec", "pytest", "hypothesis", "httpx", "starlette"),
        io=None,
    ),
    ImportRule("adapters", ("gateway.moved",)),
    ImportRule("adapters.openai", (*DIALECT, "gateway.wires")),
    ImportRule("adapters.openai.backend_errors", ADAPTER),
    ImportRule("adapters.openai.demo", _ours("core demo")),
    ImportRule("adapters.*", (*ADAPTER, *DIALECT, *_OPENAI, "gateway.moved"), others=("msgspec", "google.protobuf")),
    ImportRule("adapters.*.client", (*DIALECT, *_OPENAI)),
    ImportRule("adapters.*.backend", (*ADAPTER, *_PARTS), others=("msgspec", "google.protobuf")),
    ImportRule("adapters.*.demo", ("adapters.openai.demo", *_ours("core demo framing")), others=None, io=None),
    # Clients of chat completions also send what the other two APIs write.
    ImportRule(
        "adapters.openai_chat.client",
        (*DIALECT, *_OPENAI, "adapters.anthropic_messages.client", *_responses("client.decode turn_items")),
    ),
    # Google's two APIs have their words, their models and their errors in common.
    ImportRule("adapters.gemini_interactions", (*DIALECT, "gateway.wires", "adapters.gemini.table")),
    ImportRule(
        "adapters.gemini_interactions.client",
        (*DIALECT, "adapters.gemini", "adapters.gemini_interactions"),
    ),
    # A mapping to protobuf reuses the forms of a text wire, and the JSON of chat completions and of Google's errors.
    ImportRule(
        "adapters.proto.backend",
        (
            *ADAPTER,
            *_PARTS,
            "adapters.text.backend",
            "adapters.openai_chat.backend",
            "adapters.gemini.backend.failure",
        ),
        others=("msgspec", "google.protobuf"),
    ),
    # What learns a mapping tries it with the adapter's own template and rules.
    ImportRule(
        "adapters.proto.learn",
        (*_ours("core"), "adapters.proto.backend", "adapters.text.backend"),
        others=("msgspec", "google.protobuf"),
    ),
    # The agent reads transcripts like the text model.
    ImportRule(
        "adapters.warp.demo",
        ("adapters.openai.demo", "adapters.text.demo.transcript", *_ours("core demo framing")),
        others=None,
        io=None,
    ),
)


# The sides of a wire, of which none imports another.
SIDES: Final = ("client", "backend", "demo")
# The rooms of the server, each of which may import those before it.
SERVER_ROOMS: Final = (
    *("log", "access", "upstream", "http", "telemetry", "inspect", "doctor", "state", "summaries"),
    *("media", "api", "process"),
)


def broken_rules(root: Path, rules: Iterable[ImportRule] = RULES) -> list[str]:
    """Returns one sentence for each import under `root` (the folder of the packages `gateway` and `adapters`) that is
    not allowed. Generated protobuf modules are left out."""
    found = []
    for package in ("gateway", "adapters"):
        for path in sorted((root / package).rglob("*.py")):
            if not path.stem.endswith("_pb2"):
                parts = path.relative_to(root).with_suffix("").parts
                module = ".".join(parts).removesuffix(".__init__")
                found += broken_imports(module, path.read_text(encoding="utf-8"), rules)
    return found


def broken_imports(module: str, source: str, rules: Iterable[ImportRule] = RULES) -> list[str]:
    """Returns one sentence for each import in the source of `module` that its rule does not allow."""
    rule = max((rule for rule in rules if _below(module, rule.package)), key=lambda rule: len(rule.package))
    return [
        f"{module}, line {line}: {rule.package} may not import {name}"
        for line, name in _imports(source)
        if _is_later(name, module) or not (_is_own(name, module, rule) or _allowed(name, rule))
    ]


def _is_later(name: str, module: str) -> bool:
    """Returns whether the import is of a room of the server behind that of the importing module."""
    own, other = _server_room(module), _server_room(name)
    return own is not None and other is not None and SERVER_ROOMS.index(other) > SERVER_ROOMS.index(own)


def _server_room(module: str) -> str | None:
    """Returns the room of the server that a module is in. Raises ValueError for one that `SERVER_ROOMS` lacks."""
    parts = module.split(".")
    if parts[:2] != ["gateway", "server"] or len(parts) == 2:
        return None
    if parts[2] not in SERVER_ROOMS:
        raise ValueError(f"{module} is in no room of SERVER_ROOMS")
    return parts[2]


def _is_own(name: str, module: str, rule: ImportRule) -> bool:
    """Returns whether the import is of the package that the rule is for; for a wire, of a place of that same wire which
    is not another of its sides."""
    if not module.startswith("adapters."):
        return _below(name, rule.package) and rule.package != "gateway"
    wire, own, other = module.split(".")[1], _side(module), _side(name)
    return _below(name, f"adapters.{wire}") and other in (own, None)


def _side(module: str) -> str | None:
    """Returns the side of a wire that a module is on; None for what the sides share."""
    parts = module.split(".")
    return parts[2] if len(parts) > 2 and parts[2] in SIDES else None


def _imports(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from P import n`: n may be a module as well as a name, so P.n counts.
            origin = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def _allowed(name: str, rule: ImportRule) -> bool:
    if name.startswith("."):
        return False
    top = name.partition(".")[0]
    if top in ("gateway", "adapters"):
        return _listed(name, rule.gateway, otherwise=top == "gateway")
    if top in sys.stdlib_module_names:
        return not _listed(name, tuple(IO)) or _listed(name, rule.io)
    return _listed(name, rule.others)


def _listed(name: str, packages: tuple[str, ...] | None, otherwise: bool = True) -> bool:
    return otherwise if packages is None else any(_below(name, package) for package in packages)


def _below(name: str, package: str) -> bool:
    own, pattern = name.split("."), package.split(".")
    return len(own) >= len(pattern) and all(one in (part, "*") for one, part in zip(pattern, own, strict=False))
