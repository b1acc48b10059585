"""Runs `dragoman map learn`: what it reads, and what it prints."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from adapters.proto.learn import (
    GRPC,
    Doubt,
    RecordedExchange,
    fitting_methods,
    methods_of,
    propose,
    propose_rules,
    with_failures,
    write_request,
    write_response,
)
from gateway.adapter import Adapter, SchemaAdapter
from gateway.commands.learn.exchanges import ANSWER, SENT, ExchangeFiles, read_exchanges
from gateway.commands.learn.probe import probe, save_exchanges
from gateway.commands.learn.replay import Replay, replay
from gateway.commands.learn.report import changes_text, doubts_text, entry_text, replays_text
from gateway.commands.mapping import load
from gateway.commands.parser import settings_if_any
from gateway.commands.schema import check_scheme, named_files
from gateway.core.conversation import Json
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import InvalidRequest, SettingsError
from gateway.diagnostics.entry_check import entry_faults
from gateway.registry import load_adapter
from gateway.server.upstream.schema_cache import write_cache
from gateway.settings import BackendSettings, nearest
from gateway.settings.descriptor_files import read_descriptor_set
from gateway.settings.presets import preset_defaults

_NAME: Final = "learned"
_PROTO: Final = "proto"
# The address of a backend that was not asked.
NOWHERE: Final = "http://127.0.0.1:50051"
_MAX_EVENT: Final = 64 << 20


class Source(msgspec.Struct, frozen=True):
    """The schema, as an entry names it and as descriptors, and the method and the carrier that are given."""

    schema: Json
    descriptors: DescriptorSet
    method: str | None = None
    carrier: str | None = None


class Learned(msgspec.Struct, frozen=True):
    """A proposed entry, with what was not decided."""

    entry: dict[str, Json]
    doubts: tuple[Doubt, ...]


def run(options: argparse.Namespace) -> int:
    """Runs the command. Returns 1 where a replay differs or a recorded value is open; with `--diff`, where recordings
    change something. Raises InvalidRequest and SettingsError."""
    if options.probe is not None:
        return _probe(options)
    if not options.recorded:
        raise InvalidRequest("there is nothing to learn from: name recorded exchanges, or a server with --probe")
    settings = settings_if_any(options.settings)
    files = read_exchanges(options.recorded, settings)
    source, before = _source(options)
    source, exchanges, doubts = located(source, files)
    if options.hold_back >= len(exchanges):
        raise InvalidRequest(f"--hold-back {options.hold_back} leaves none of {len(exchanges)} exchanges to learn from")
    learned = learn(source, exchanges[: len(exchanges) - options.hold_back], NOWHERE, doubts)
    if before is not None:
        return _diff(before, learned, exchanges)
    return report(learned, exchanges, options.hold_back, options.out)


def _probe(options: argparse.Namespace) -> int:
    """Learns from a server that is asked, and keeps its schema beside the entry."""
    if options.recorded or options.diff is not None or options.schema is not None:
        raise InvalidRequest("--probe asks a server for its schema and for answers; it takes no other source")
    if options.model is None:
        raise InvalidRequest("--model is missing: the service's name of a model, for the requests of the probe")
    check_scheme(options.probe)
    probed = probe(options.probe, options.model, options.method, options.api_key_env, options.yes)
    if probed is None:
        print("nothing was sent")
        return 1
    if options.save is not None:
        save_exchanges(options.save, options.model, probed.exchanges)
    cache = Path("learned.pb") if options.out is None else options.out.with_suffix(".pb")
    write_cache(cache, probed.descriptors)
    named: Json = {"reflection": True, "cache": str(cache)}
    guess = probed.guess
    proposal = propose_rules(probed.descriptors, guess.method, GRPC, probed.exchanges, guess.template)
    entry: dict[str, Json] = {"adapter": _PROTO, "base_url": options.probe, "schema": named, **proposal.entry}
    learned = Learned(entry, (*guess.doubts, *proposal.doubts))
    return report(learned, probed.exchanges, 0, options.out)


def _source(options: argparse.Namespace) -> tuple[Source, "Before | None"]:
    """Returns the schema, and the entry with which recordings are compared; the entry names what no option does."""
    before = None if options.diff is None else _before(options.diff)
    if options.schema is None and before is None:
        raise InvalidRequest("--schema is missing: a descriptor set or a .proto file of the service")
    method = options.method or (None if before is None else str(before.options["method"]))
    carrier = options.carrier or (None if before is None else str(before.options["carrier"]))
    if options.schema is None and before is not None:
        return Source(before.options.get("schema"), before.descriptors, method, carrier), before
    named = named_files(options.schema, options.include)
    return Source(named, read_descriptor_set(named, "schema"), method, carrier), before


class Before(msgspec.Struct, frozen=True):
    """An entry with the keys of its preset. (Any: JSON and descriptors.)"""

    options: Mapping[str, Any]
    adapter: Adapter
    descriptors: DescriptorSet


def _before(path: Path) -> Before:
    entries = [entry for entry in load(path).backends.values() if entry.adapter == _PROTO]
    if len(entries) != 1:
        raise SettingsError(f"{path}: it must have one backend of the adapter {_PROTO!r}; it has {len(entries)}")
    adapter = load_adapter(_NAME, entries[0], _MAX_EVENT)
    assert isinstance(adapter, SchemaAdapter), "every adapter of this name has a schema"
    defaults = preset_defaults(entries[0].options, adapter.Options, _NAME)
    return Before({**defaults, **entries[0].options}, load_adapter(_NAME, entries[0], _MAX_EVENT), adapter.schema)


def located(source: Source, files: Sequence[ExchangeFiles]) -> tuple[Source, list[RecordedExchange], tuple[Doubt, ...]]:
    """Returns the source with the method and the carrier of all exchanges, and the exchanges with their bodies. Raises
    InvalidRequest where no method of the schema fits them."""
    method = source.method or next((file.method for file in files if file.method is not None), None)
    carrier = source.carrier or next((file.carrier for file in files if file.carrier is not None), None)
    known = methods_of(source.descriptors)
    if method is not None and method not in known:
        raise InvalidRequest(f"the schema has no method {method!r}{nearest(method, known)}")
    if any(file.sent_json or file.answer_json for file in files):
        method = method or (known[0] if len(known) == 1 else None)
        if method is None:
            raise InvalidRequest(f"--method is missing: the schema has {', '.join(known)}")
        if carrier not in (None, GRPC):
            raise InvalidRequest(f"messages in JSON have no carrier; --carrier {carrier} needs the bodies themselves")
        exchanges = [_with_bodies(file, source.descriptors, method) for file in files]
        told = with_failures(source.descriptors, method, GRPC, exchanges)
        return msgspec.structs.replace(source, method=method, carrier=GRPC), told, ()
    exchanges = [file.exchange for file in files]
    fitting = fitting_methods(source.descriptors, carrier, exchanges)
    fitting = [pair for pair in fitting if method in (None, pair[0])]
    if not fitting:
        named = method or "any method of the schema"
        over = "any carrier" if carrier is None else f"the carrier {carrier!r}"
        raise InvalidRequest(f"the recorded bodies are not those of {named} over {over}, without unknown fields")
    (method, carrier), *others = fitting
    doubt = Doubt("chosen", "method", f"{method} over {carrier}; as well fit", tuple(map(" over ".join, others)))
    told = with_failures(source.descriptors, method, carrier, exchanges)
    return msgspec.structs.replace(source, method=method, carrier=carrier), told, (doubt,) if others else ()


def _with_bodies(file: ExchangeFiles, schema: DescriptorSet, method: str) -> RecordedExchange:
    one = file.exchange
    body, answer, name = one.body, one.answer, SENT
    try:
        if file.sent_json:
            body = write_request(schema, method, one.body)
        name = ANSWER
        if file.answer_json:
            answer = write_response(schema, method, one.answer)
    except InvalidRequest as error:
        raise InvalidRequest(f"{file.folder / name}.json: {error.message}") from error
    return msgspec.structs.replace(one, body=body, answer=answer)


def learn(source: Source, exchanges: Sequence[RecordedExchange], base_url: str, doubts: tuple[Doubt, ...]) -> Learned:
    """Returns the entry that the exchanges show."""
    proposal = propose(source.descriptors, source.method or "", source.carrier or "", exchanges)
    entry: dict[str, Json] = {"adapter": _PROTO, "base_url": base_url, "schema": source.schema, **proposal.entry}
    return Learned(entry, (*doubts, *proposal.doubts))


def report(learned: Learned, exchanges: Sequence[RecordedExchange], hold_back: int, output: Path | None) -> int:
    """Prints the replays, what was not decided, and the entry, or where it was written."""
    shown = exchanges[: len(exchanges) - hold_back]
    print(f"learned from {len(shown)} exchanges: {', '.join(one.name for one in shown)}")
    print(f"method {learned.entry['method']} over {learned.entry['carrier']}\n")
    faults, adapter = _adapter(learned.entry)
    replays = [] if adapter is None else [replay(adapter, one) for one in exchanges]
    if faults:
        print("the entry cannot be used yet")
        print("".join(f"  {fault}\n" for fault in faults))
    else:
        print(replays_text(replays[: len(shown)], replays[len(shown) :]))
    print(doubts_text(learned.doubts))
    if output is None:
        print(entry_text(learned.entry), end="")
    else:
        output.write_text(entry_text(learned.entry), encoding="utf-8")
        print(f"wrote {output}")
    is_open = any(doubt.kind == "open" for doubt in learned.doubts)
    return 1 if faults or is_open or not all(one.equal for one in replays) else 0


def _adapter(entry: Mapping[str, Json]) -> tuple[tuple[str, ...], Adapter | None]:
    options = {key: value for key, value in entry.items() if key not in ("adapter", "base_url")}
    settings = BackendSettings(_PROTO, str(entry["base_url"]), options=options)
    faults = entry_faults(_NAME, settings, _MAX_EVENT)
    return faults, None if faults else load_adapter(_NAME, settings, _MAX_EVENT)


def _diff(before: Before, learned: Learned, exchanges: Sequence[RecordedExchange]) -> int:
    """Prints what the exchanges change about an entry."""
    replays: list[Replay] = [replay(before.adapter, one) for one in exchanges]
    outdated = [text for one in replays for text in one.outdated]
    text = changes_text(before.options, learned.entry, replays, outdated)
    print(text or f"nothing: the entry replays {len(exchanges)} exchanges\n", end="")
    return 1 if text else 0
