"""Runs `dragoman prove`: says what recorded and saved requests lose, and fails where that is more than before."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.commands.parser import add_settings, read_input, settings_if_any

if TYPE_CHECKING:
    from gateway.diagnostics.prove import Compared, Proof, Proofs, Way

HELP: Final = "prove that requests lose no more than before: for continuous integration"
NEW_LOSS: Final = 1
UNREADABLE: Final = 2
NEW_FAILURE: Final = 3


def add_arguments(parser: argparse.ArgumentParser, dialect_help: str, environ: Mapping[str, str]) -> None:
    """Adds the arguments of `dragoman prove`."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a recording, a request, or .jsonl with one a line; - for stdin"
    )
    parser.add_argument("--model", help="the model, instead of the model in each request")
    parser.add_argument(
        "--allow", action="append", default=[], metavar="RULE", help="a rule whose losses are no new ones (repeatable)"
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="the losses that are known, as --json prints them"
    )
    parser.add_argument("--write-baseline", type=Path, metavar="FILE", help="write the losses that there are")
    add_settings(parser, environ)
    parser.add_argument("--dialect", help=dialect_help)
    parser.add_argument("--json", action="store_true", help="print all losses as JSON, which is a baseline, too")


def run(options: argparse.Namespace) -> int:
    """Runs `dragoman prove`. Raises InvalidRequest for an unknown rule and for a baseline that is none, and
    SettingsError."""
    from gateway.core.errors import InvalidRequest
    from gateway.diagnostics.prove import Proof, Proofs, Way, as_text, compare
    from gateway.registry import load_adapters, load_dialect
    from gateway.settings import Settings

    if options.dialect is not None:
        load_dialect(options.dialect)  # an unknown name is one error, not one for each file
    _check_rules(options.allow)
    baseline = Proofs(()) if options.baseline is None else _read_baseline(options.baseline)
    settings = settings_if_any(options.settings) or Settings()
    way = Way(settings, load_adapters(settings), options.model, options.dialect)
    proofs: list[Proof] = []
    unreadable = False
    for file in options.files:
        try:
            proofs += _prove(file, way)
        except InvalidRequest as error:
            print(f"dragoman: {error.message}", file=sys.stderr)
            unreadable = True
    compared = compare(proofs, baseline, options.allow)
    if options.json:
        print(_as_json(proofs), end="")
    else:
        print("\n".join(as_text(compared, proofs)))
    if unreadable:
        return UNREADABLE
    if options.write_baseline is not None:
        _write(options.write_baseline, [one for one in proofs if one.losses or one.failure])
        return 0
    return _status(compared)


def _prove(file: str, way: "Way") -> "Sequence[Proof]":
    from gateway.diagnostics.prove import prove

    return prove(file, read_input(file), way)


def _status(compared: "Sequence[Compared]") -> int:
    if any(one.losses for one in compared):
        return NEW_LOSS
    return NEW_FAILURE if any(one.failure for one in compared) else 0


def _check_rules(rules: Sequence[str]) -> None:
    from gateway.core.errors import InvalidRequest
    from gateway.core.requirements import BREACHES, BY_FIELD
    from gateway.settings import nearest

    known = {*BREACHES, *BY_FIELD}
    for rule in rules:
        if rule not in known:
            raise InvalidRequest(f"--allow: no rule {rule!r} breaks a requirement{nearest(rule, known)}")


def _read_baseline(path: Path) -> "Proofs":
    import msgspec

    from gateway.core.errors import InvalidRequest
    from gateway.diagnostics.prove import Proofs

    try:
        return msgspec.json.decode(read_input(str(path)), type=Proofs)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path}: is no baseline, which dragoman prove --json prints: {error}") from error


def _as_json(proofs: "Sequence[Proof]") -> str:
    import msgspec

    from gateway.diagnostics.prove import Proofs

    return msgspec.json.format(msgspec.json.encode(Proofs(tuple(proofs))), indent=1).decode() + "\n"


def _write(path: Path, proofs: "Sequence[Proof]") -> None:
    from gateway.core.errors import InvalidRequest

    try:
        path.write_text(_as_json(proofs), encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"{path}: cannot be written: {error.strerror}") from error
