"""Runs `dragoman map`: checks the entries of backends, or tries or learns one without its backend."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.commands.parser import add_out, add_settings, whole_number

if TYPE_CHECKING:
    from gateway.settings import Settings

HELP: Final = "check, try or learn the entry of a backend, without the backend"
_HEX: Final = ".hex"
_SUCCESS: Final = "grpc-status:0"
_RECORDED_HELP: Final = "a recording, a folder with the files of an exchange, or a folder of such folders"


def add_parsers(parser: argparse.ArgumentParser, dialect_help: str, environ: Mapping[str, str]) -> None:
    """Adds the arguments of each action."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="report every fault of the entries, with its place and the nearest name")
    check.add_argument("file", metavar="FILE", type=Path, help="a settings file, or the entry of one backend")
    trial = actions.add_parser("try", help="show a request as it is sent, and the events that a response becomes")
    trial.add_argument("file", metavar="FILE", type=Path, help="a settings file, or the entry of one backend")
    trial.add_argument("--request", metavar="FILE", help="a request or an array of messages (default a greeting)")
    trial.add_argument("--answer", metavar="FILE", help="the body of a response: bytes, or text in a .hex file")
    trial.add_argument(
        "--trailer", action="append", metavar="NAME:VALUE", help="a trailer of the response (default grpc-status:0)"
    )
    trial.add_argument("--model", help="the model, instead of the model in the request")
    trial.add_argument("--dialect", help=dialect_help)
    learn = actions.add_parser("learn", help="propose the entry of a protobuf backend from recorded exchanges")
    learn.add_argument("recorded", metavar="RECORDED", type=Path, nargs="*", help=_RECORDED_HELP)
    learn.add_argument("--schema", metavar="SCHEMA", help="a descriptor set or a .proto file of the service")
    learn.add_argument(
        "--include", action="append", default=[], metavar="FOLDER", help="a folder for the imports of .proto files"
    )
    learn.add_argument("--method", help="package.Service/Method (default the one that the bodies fit)")
    learn.add_argument("--carrier", help="how HTTP holds the messages (default the one that the bodies fit)")
    learn.add_argument(
        "--hold-back",
        metavar="N",
        type=whole_number(0, 10_000),
        default=0,
        help="only replay the last N exchanges, unseen (default 0)",
    )
    learn.add_argument("--diff", metavar="ENTRY", type=Path, help="print what the exchanges change about this entry")
    add_out(learn, "the file for the entry (default it is printed)", "--output")
    learn.add_argument("--probe", metavar="URL", help="ask this gRPC server, after a question that names the cost")
    learn.add_argument("--model", help="the model of a probe, by the service's name")
    learn.add_argument("--api-key-env", metavar="NAME", help="the variable with the key that a probe sends")
    learn.add_argument("--yes", action="store_true", help="send a probe without a question")
    learn.add_argument("--save", metavar="FOLDER", type=Path, help="the folder for the exchanges of a probe")
    add_settings(learn, environ)


def run(options: argparse.Namespace) -> int:
    """Runs one action. Raises SettingsError and InvalidRequest for files that are wrong."""
    return _ACTIONS[options.action](options)


def _check(options: argparse.Namespace) -> int:
    from gateway.diagnostics.entry_check import entry_faults
    from gateway.settings import with_place

    settings = load(options.file)
    max_event = int(settings.limits.max_event_mb * 2**20)
    faulty = False
    for name, entry in settings.backends.items():
        faults = entry_faults(name, entry, max_event)
        for fault in faults:
            print(with_place(options.file, fault))
        if not faults:
            print(f"backends.{name}: no fault")
        faulty |= bool(faults)
    return 1 if faulty else 0


def _try(options: argparse.Namespace) -> int:
    from gateway.core.errors import GatewayError, SettingsError
    from gateway.diagnostics.explain import encoded_request
    from gateway.diagnostics.explain_text import fields_text
    from gateway.diagnostics.routed_request import route_document
    from gateway.diagnostics.saved_dialect import saved_dialect
    from gateway.diagnostics.trial import request_text, response_text, try_response
    from gateway.dialects.document import Document, read_saved
    from gateway.exchange import Exchange
    from gateway.registry import load_adapters, load_dialect

    settings = load(options.file)
    if options.request is None:
        dialect = load_dialect(options.dialect)
        document = Document(dict(dialect.example(next(iter(settings.models), "any"))))
    else:
        saved = _read(options.request)
        dialect = saved_dialect(saved, options.dialect)
        document = read_saved(saved, dialect.paths.param("messages"))
    document.fields.update({} if options.model is None else {"model": options.model})
    routed = route_document(document, settings, load_adapters(settings), dialect)
    if routed.adapter is None:
        raise SettingsError(f"{options.file}: there is no model, and so no backend to try")
    try:
        exchange = Exchange(
            routed.adapter, routed.conversation, routed.policy, label=routed.label, window=routed.window
        )
    except GatewayError as error:
        print(f"refused, nothing would be sent: {error.message}")
        return 1
    encoded = encoded_request(exchange, routed.adapter, routed.policy)
    print(request_text(exchange.request))
    if encoded.schema is not None:
        print("\n".join([*fields_text(encoded, encoded.schema, colour=False)]), end="\n\n")
    if options.answer is None:
        return 0
    trial = try_response(exchange, _read_answer(options.answer), _trailers(options.trailer or [_SUCCESS]))
    print(response_text(trial), end="")
    return 1 if trial.error is not None else 0


def _learn(options: argparse.Namespace) -> int:
    from gateway.commands.learn.run import run

    return run(options)


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "check": _check,
    "try": _try,
    "learn": _learn,
}


def load(path: Path) -> "Settings":
    """Returns the settings in a file, or those of the one backend whose entry it holds, which serves every model.
    Raises SettingsError."""
    import msgspec

    from gateway.core.errors import SettingsError
    from gateway.settings import load_settings, read_settings
    from gateway.settings.model_names import ANY

    try:
        entry = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        entry = None
    if not isinstance(entry, dict) or "adapter" not in entry:
        return load_settings(path)
    try:
        return read_settings({"backends": {path.stem: entry}, "models": {ANY: {"backend": path.stem}}})
    except SettingsError as error:
        raise SettingsError(f"{path}: {error.message}") from error


def _read(file: str) -> bytes:
    from gateway.core.errors import InvalidRequest

    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{file}: cannot be read: {error.strerror}") from error


def _read_answer(file: str) -> bytes:
    from gateway.core.errors import InvalidRequest

    data = _read(file)
    if not file.endswith(_HEX):
        return data
    try:
        return bytes.fromhex(data.decode("ascii", "replace"))
    except ValueError as error:
        raise InvalidRequest(f"{file}: it is not text of pairs of hexadecimal digits") from error


def _trailers(written: list[str]) -> dict[str, str]:
    fields = (trailer.partition(":") for trailer in written)
    return {name.strip().lower(): value.strip() for name, _, value in fields}
