"""The `dragoman` command: arguments in, a serving gateway or one readable line and an exit status out."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from gateway.types import Json

DEMO_SETTINGS: Json = {
    "backends": {
        "demo-agent": {"adapter": "adapters.warp:WarpAdapter", "base_url": "demo:agent"},
        "demo-chat": {"adapter": "adapters.openai_chat:OpenAIChatAdapter", "base_url": "demo:chat"},
    },
    "models": {"demo-agent": {"backend": "demo-agent", "name": "auto"}, "demo-chat": {"backend": "demo-chat"}},
    "log": {"file": None},
}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 after a clean stop, 2 when arguments or settings are wrong."""
    options = _parser(os.environ).parse_args(arguments)
    # Only now: the command line answers --help and --version at once.
    from gateway.errors import SettingsError

    try:
        _serve(options)
    except SettingsError as error:
        print(f"dragoman: {error.message}", file=sys.stderr)
        sys.exit(2)
    sys.exit(0)


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dragoman", description="A provider translation gateway.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve clients as settings.json says")
    demo = commands.add_parser("demo", help="serve the built-in demo backends; needs no settings and no credential")
    serve.add_argument(
        "--settings",
        type=Path,
        default=Path(environ.get("DRAGOMAN_SETTINGS") or "settings.json"),
        help="the settings file (DRAGOMAN_SETTINGS; default settings.json)",
    )
    for command in (serve, demo):
        command.add_argument("--host", help="the address to bind to, instead of server.host")
        command.add_argument(
            "--port",
            default=environ.get("DRAGOMAN_PORT") or None,
            help="the port (DRAGOMAN_PORT), instead of server.port",
        )
        command.add_argument(
            "--insecure-no-key", action="store_true", help="let everybody in, even from other machines"
        )
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"dragoman {version('dragoman')}")
        parser.exit()


def _serve(options: argparse.Namespace) -> None:
    from gateway.settings import load_settings, override_server, read_settings

    settings = read_settings(DEMO_SETTINGS) if options.command == "demo" else load_settings(options.settings)
    settings = override_server(settings, options.host, options.port)

    # The heavy imports come after everything that can be told without them.
    from gateway.server.run import serve

    models = [name for name in settings.models if name != "*"]
    variable = settings.server.api_keys_env
    key = f"${{{variable}%%,*}}" if variable and os.environ.get(variable) else ""

    def announce(address: str) -> None:
        print(f"dragoman listens on {address}/v1", flush=True)
        if models:
            print(f"Try it:\n  {curl(address, models[0], key)}", flush=True)

    serve(settings, options.insecure_no_key, announce)


def curl(address: str, model: str, key: str) -> str:
    """A command that works as it is printed."""
    import json
    import shlex

    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello"}]})
    authorization = f' -H "Authorization: Bearer {key}"' if key else ""
    return (
        f"curl -sS {address}/v1/chat/completions -H 'Content-Type: application/json'{authorization} "
        f"-d {shlex.quote(body)}"
    )
