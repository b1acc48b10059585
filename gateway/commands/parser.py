"""Parses the command line: each command says what it does, a mistake gets the nearest name that exists, and numbers
have bounds.
"""

import argparse
import difflib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from gateway.settings import Settings

DEFAULT_SETTINGS: Final = Path("settings.json")
SETTINGS_HELP: Final = "the settings file (DRAGOMAN_SETTINGS; default settings.json)"


class CommandParser(argparse.ArgumentParser):
    """An ArgumentParser whose errors name the command, the nearest option or command, and where to read more."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.register("action", "parsers", _Commands)

    def parse_known_args(  # type: ignore[override]  # of its overloads only the plain one is called
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuses unknown arguments here, where the parser of the command is known."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(_unknown(unknown, self._option_string_actions))
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Prints how the command is used, and what is wrong."""
        super().error(f"{message} ({self.prog} --help lists what there is)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from gateway.settings import nearest

            raise argparse.ArgumentError(action, f"there is no {value!r}{nearest(value, action.choices)}")


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]  # generic only in its stub
    def add_parser(self, name: str, **options: Any) -> Any:
        """Adds a command; what the list of commands says of it stands in its own help, too."""
        about: str = options["help"]
        return super().add_parser(name, description=f"{about[0].upper()}{about[1:]}.", **options)


def _unknown(words: Sequence[str], options: Iterable[str]) -> str:
    option = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
    if option is None:
        return f"one argument too many: {words[0]!r}"
    similar = difflib.get_close_matches(option, options, n=1, cutoff=0.6)
    return f"there is no option {option}{f'; did you mean {similar[0]}?' if similar else ''}"


def default_settings(environ: Mapping[str, str]) -> Path:
    """Returns the settings file of a command to which none is given."""
    return Path(environ.get("DRAGOMAN_SETTINGS") or DEFAULT_SETTINGS)


def add_settings(parser: "argparse._ActionsContainer", environ: Mapping[str, str]) -> None:
    """Adds `--settings`, which is the same in every command."""
    parser.add_argument("--settings", type=Path, default=default_settings(environ), help=SETTINGS_HELP)


def settings_if_any(path: Path) -> "Settings | None":
    """Returns the settings of a file for a command that can do without; None: nobody has named a file, and there is
    none. Raises SettingsError."""
    from gateway.settings import load_settings

    return None if path == DEFAULT_SETTINGS and not path.exists() else load_settings(path)


def read_input(file: str) -> bytes:
    """Returns the content of a file; `-` is the standard input. Raises InvalidRequest for one that cannot be read."""
    from gateway.core.errors import InvalidRequest

    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{file}: cannot be read: {error.strerror}") from error


def add_out(parser: argparse.ArgumentParser, text: str, *further: str, **options: Any) -> None:
    """Adds `-o` and `--out`, which name the file that a command writes. `text` says of what; `further` are older names
    of the option. (Any: as argparse takes it.)"""
    parser.add_argument("-o", "--out", *further, type=Path, metavar="FILE", help=text, **options)


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Returns a type for argparse, which refuses everything but whole numbers from `low` to `high`."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text[:18]) <= high):
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {low} to {high}")
        return int(text)

    return read


def speed(text: str) -> float:
    """Returns a number that is 0 or more; a type for argparse."""
    try:
        read = float(text)
    except ValueError:
        read = -1
    if not 0 <= read < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return read
