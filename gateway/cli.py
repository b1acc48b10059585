"""Runs the `dragoman` command: serves a gateway, or prints one readable line and returns an exit status."""

import argparse
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from gateway.commands import (
    adapters,
    completion,
    config,
    connect,
    doctor,
    init,
    inspect,
    mapping,
    models,
    prove,
    record,
    recordings,
    schema,
    state,
)
from gateway.commands.parser import CommandParser, add_settings, read_input, settings_if_any

if TYPE_CHECKING:
    from gateway.settings import Settings

DIALECT_HELP: Final = "the dialect of the request, if its shape does not tell"
# What a shell shows of a program that SIGPIPE or SIGINT has ended.
PIPE_CLOSED: Final = 141
INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs one command and exits: 0 on success, 1 for findings, 2 when arguments, settings or files are wrong, 130
    after Ctrl-C, 141 when nobody reads its output any more."""
    try:
        try:
            _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered would fail again at the end of the interpreter, which prints that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(PIPE_CLOSED)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        sys.exit(INTERRUPTED)


def _print_any_character() -> None:
    """Prints UTF-8 into a file and a pipe: on Windows, Python would take a code page that lacks most characters."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")


def _run(arguments: Sequence[str] | None) -> NoReturn:
    _print_any_character()
    options = _parser(os.environ).parse_args(arguments)
    # Imported only now: the command line responds to --help and --version at once.
    from gateway.core.errors import InvalidRequest, SettingsError

    try:
        sys.exit(COMMANDS[options.command](options))
    except (InvalidRequest, SettingsError) as error:
        print(f"dragoman: {error.message}", file=sys.stderr)
        sys.exit(2)


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = CommandParser(prog="dragoman", description="A provider translation gateway.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve clients with the settings of settings.json")
    demo = commands.add_parser("demo", help="serve the built-in demo backends; needs no settings and no credential")
    local = commands.add_parser("local", help="serve a small model on this machine; needs two optional packages")
    add_settings(serve, environ)
    for command in (serve, demo):
        command.add_argument(
            "--workers",
            default=environ.get("DRAGOMAN_WORKERS") or None,
            help="the number of serving processes (DRAGOMAN_WORKERS), instead of server.workers",
        )
    _explain_parser(commands, environ)
    lint = commands.add_parser("lint", help="check requests against the rules of the message protocol")
    lint.add_argument(
        "files", nargs="+", metavar="FILE", help="JSON, .jsonl with one request per line, or a recording; - for stdin"
    )
    lint.add_argument("--profile", help="the provider profile whose rules are checked as well")
    lint.add_argument("--format", choices=("text", "json", "sarif"), default="text", help="the output format")
    lint.add_argument("--dialect", help=DIALECT_HELP)
    init.add_arguments(commands.add_parser("init", help=init.HELP))
    connect.add_arguments(commands.add_parser("connect", help=connect.HELP), environ)
    for name, text in adapters.HELPS.items():
        commands.add_parser(name, help=text)
    config.add_parsers(commands.add_parser("config", help=config.HELP), environ)
    doctor.add_arguments(commands.add_parser("doctor", help=doctor.HELP), environ)
    schema.add_parsers(commands.add_parser("schema", help=schema.HELP), environ)
    mapping.add_parsers(commands.add_parser("map", help=mapping.HELP), DIALECT_HELP, environ)
    models.add_parsers(commands.add_parser("models", help=models.HELP), environ)
    state.add_parsers(commands.add_parser("state", help=state.HELP), environ)
    record.add_arguments(commands.add_parser("record", help=record.HELP))
    recordings.add_replay(commands.add_parser("replay", help=recordings.REPLAY_HELP), environ)
    recordings.add_minimise(commands.add_parser("minimise", help=recordings.MINIMISE_HELP), environ)
    prove.add_arguments(commands.add_parser("prove", help=prove.HELP), DIALECT_HELP, environ)
    inspect.add_arguments(commands.add_parser("inspect", help=inspect.HELP), environ)
    completion.add_arguments(commands.add_parser("completion", help=completion.HELP))
    serve.add_argument("--record", metavar="DIR", help="save every request in this folder, redacted")
    for command in (serve, demo, local):
        command.add_argument("--host", help="the address to bind to, instead of server.host")
        command.add_argument(
            "--port",
            default=environ.get("DRAGOMAN_PORT") or None,
            help="the port (DRAGOMAN_PORT), instead of server.port",
        )
        command.add_argument("--insecure-no-key", action="store_true", help="allow any address without client keys")
    return parser


def _explain_parser(commands: "argparse._SubParsersAction[CommandParser]", environ: Mapping[str, str]) -> None:
    explain = commands.add_parser("explain", help="show the backend request for a client request, and every change")
    explain.add_argument("file", metavar="FILE", help="a request, an array of messages, or a recording; - for stdin")
    explain.add_argument(
        "--id", metavar="ID", help="the request of a recording (default the last that failed, else the last)"
    )
    explain.add_argument(
        "--since", metavar="FILE", help="the request before it: say what a provider's prompt cache loses, and by whom"
    )
    explain.add_argument(
        "--candidates", action="store_true", help="show which models may answer, and what each of them would lose"
    )
    explain.add_argument("--model", help="the model, instead of the model in the request")
    explain.add_argument("--profile", help="the provider profile, instead of that of the model")
    add_settings(explain, environ)
    explain.add_argument("--dialect", help=DIALECT_HELP)
    explain.add_argument("--json", action="store_true", help="print the whole explanation as JSON")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"dragoman {version('dragoman')}")
        parser.exit()


def _serve(options: argparse.Namespace) -> int:
    from gateway.core.errors import SettingsError
    from gateway.settings import Settings, load_settings, override_record, override_server, read_settings, with_place

    if options.command == "demo":
        from gateway.demo.settings import DEMO_SETTINGS

        settings = override_server(read_settings(DEMO_SETTINGS), options.host, options.port, options.workers)
        _listen(settings, options.insecure_no_key)
        return 0

    def load() -> Settings:
        settings = override_server(load_settings(options.settings), options.host, options.port, options.workers)
        return override_record(settings, options.record)

    try:
        _listen(load(), options.insecure_no_key, (options.settings, load))
    except SettingsError as error:
        raise SettingsError(with_place(options.settings, error.message)) from error
    return 0


def _local(options: argparse.Namespace) -> int:
    from gateway.local import find_weights, run_model, settings_for_model
    from gateway.settings import override_server, read_settings

    with run_model(find_weights()) as model:
        settings = read_settings(settings_for_model(model.base_url))
        _listen(override_server(settings, options.host, options.port), options.insecure_no_key)
    return 0


def _listen(settings: "Settings", insecure: bool, source: "tuple[Path, Callable[[], Settings]] | None" = None) -> None:
    import gc

    # What a start makes stays: a search for garbage in it would take a tenth of the start. It ends with the start.
    gc.disable()
    # The heavy imports follow every error that can be reported without them.
    from gateway.connect.target import key_reference
    from gateway.server.access.request_checks import is_loopback
    from gateway.server.inspect.access import INSPECT, InspectorAccess
    from gateway.server.process.noted_address import note_address
    from gateway.server.process.run import serve
    from gateway.server.state.state_folder import StateFolder
    from gateway.server.upstream.backends import DEMO
    from gateway.server.upstream.demo_backends import DEMO_REQUESTS
    from gateway.settings.model_names import exact_names
    from gateway.settings.source import SettingsSource

    access = InspectorAccess(settings, os.environ)
    models = exact_names(settings.models)
    demo_backends = any(entry.base_url.startswith(DEMO) for entry in settings.backends.values())
    shows_demos = demo_backends and is_loopback(settings.server.host)
    key = key_reference(settings.server, os.environ)

    def announce(address: str) -> None:
        note_address(StateFolder(os.environ, settings.state.folder).path, address)
        lines = [f"dragoman listens on {address}/v1"]
        if models:
            lines += ["Try it:", f"  {curl(address, models[0], key)}"]
        if shows_demos:
            lines += ["Requests that the demo backends received:", f"  {get(address, DEMO_REQUESTS, key)}"]
        if access.is_open(settings, bool(key)):
            asks = f" (it asks for the key in {settings.inspector.admin_key_env})" if access.key else ""
            lines += ["Every request, and what is changed in it:", f"  {address}{INSPECT}{asks}"]
        # One write: where output is not buffered, lines of the log may come between two.
        print("\n".join([*lines, ""]), end="", flush=True)

    serve(settings, insecure, announce, SettingsSource(*source) if source else None)


def curl(address: str, model: str, key: str) -> str:
    """Returns a command that works as printed (after a key of a file is inserted)."""
    import json
    import shlex

    from gateway.registry import load_dialect

    dialect = load_dialect()
    path = next(route.path for route in dialect.routes if route.kind == "generate")
    body = shlex.quote(json.dumps(dialect.example(model)))
    return f"curl -sS {address}{path} -H 'Content-Type: application/json'{_key_option(key)} -d {body}"


def get(address: str, path: str, key: str) -> str:
    """Returns the same for a page."""
    return f"curl -sS {address}{path}{_key_option(key)}"


def _key_option(key: str) -> str:
    from gateway.registry import load_dialect

    return f' -H "{load_dialect().key_places[0].line(key)}"' if key else ""


def _explain(options: argparse.Namespace) -> int:
    import shutil

    import msgspec

    from gateway.core.errors import InvalidRequest
    from gateway.diagnostics.explain_recorded import (
        chosen_request,
        explain_recorded,
        recorded_document,
        recorded_outcome,
    )
    from gateway.diagnostics.explain_request import explain_document
    from gateway.diagnostics.explain_since import SavedRequest, explain_since
    from gateway.diagnostics.explain_text import explain_text, visible
    from gateway.diagnostics.saved_dialect import saved_dialect
    from gateway.dialects.document import read_saved
    from gateway.recording.recording import Interaction, is_recording, read_recording
    from gateway.registry import load_adapters, load_dialect
    from gateway.settings import Settings

    settings = settings_if_any(options.settings) or Settings()
    given = {key: value for key in ("model", "profile") if (value := getattr(options, key)) is not None}

    def saved(data: bytes, request_id: str | None = None) -> tuple[SavedRequest, Interaction | None]:
        if is_recording(data):
            recorded = chosen_request(read_recording(data), request_id)
            document, dialect = recorded_document(recorded), load_dialect(recorded.request.dialect)
        else:
            recorded, dialect = None, saved_dialect(data, options.dialect)
            document = read_saved(data, dialect.paths.param("messages"))
        document.fields.update(given)
        return SavedRequest(document, dialect), recorded

    data, adapters = read_input(options.file), load_adapters(settings)
    request, recorded = saved(data, options.id)
    if recorded is None and options.id is not None:
        raise InvalidRequest(f"{options.file} is no recording, and has no request {options.id!r}.")
    dialect = request.dialect
    messages = request.document.fields.get(dialect.paths.param("messages"))
    if recorded is not None and not given:
        explanation = explain_recorded(recorded, settings)
    else:
        explanation = explain_document(request.document, settings, adapters, dialect)
    if options.since is not None and explanation.error is None:
        cache = explain_since(request, saved(read_input(options.since))[0], settings, adapters)
        explanation = msgspec.structs.replace(explanation, cache=cache)
    if options.candidates:
        # Loaded where they are asked for.
        from gateway.diagnostics.explain_candidates import explain_candidates

        compared = explain_candidates(request.document, settings, adapters, dialect)
        explanation = msgspec.structs.replace(explanation, candidates=compared)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(explanation), indent=2).decode())
    else:
        listed = messages if isinstance(messages, list) else []
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        width = shutil.get_terminal_size().columns
        if recorded is not None:
            print(visible(recorded_outcome(recorded, read_recording(data))))
        print(explain_text(explanation, listed, paths=dialect.paths, width=width, colour=colour), end="")
    return 1 if explanation.error else 0


def _lint(options: argparse.Namespace) -> int:
    from gateway.core.errors import InvalidRequest
    from gateway.core.policy import Policy
    from gateway.diagnostics.lint import FORMATS, Finding, lint
    from gateway.providers.registry import PROFILES
    from gateway.registry import load_dialect
    from gateway.settings import override_policy

    given = options.profile
    profile = None if given is None else override_policy(Policy(), {"profile": given}, PROFILES).profile
    if options.dialect is not None:
        load_dialect(options.dialect)  # an unknown name is one error, not one for each file
    findings: list[Finding] = []
    unreadable = False
    for file in options.files:
        try:
            findings += lint(file, read_input(file), profile, options.dialect)
        except InvalidRequest as error:
            print(f"dragoman: {error.message}", file=sys.stderr)
            unreadable = True
    print(FORMATS[options.format](findings), end="")
    return 2 if unreadable else 1 if findings else 0


COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "serve": _serve,
    "demo": _serve,
    "local": _local,
    "explain": _explain,
    "lint": _lint,
    "init": init.run,
    "connect": connect.run,
    **dict.fromkeys(adapters.HELPS, adapters.run),
    "config": config.run,
    "doctor": doctor.run,
    "schema": schema.run,
    "map": mapping.run,
    "models": models.run,
    "state": state.run,
    "record": record.run,
    **recordings.ACTIONS,
    "prove": prove.run,
    "inspect": inspect.inspect,
    "completion": completion.run,
}
