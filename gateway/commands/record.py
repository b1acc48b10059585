"""Runs `dragoman record`: saves requests of a running gateway in a file."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gateway.commands.inspector_client import API, get, open_client
from gateway.commands.parser import add_out, whole_number
from gateway.commands.terminal import counted, is_agreed, sized

if TYPE_CHECKING:
    import httpx

HELP: Final = "save requests of a running gateway in a file, redacted"
# The gateway lists no more at once.
_MOST: Final = 1000
_URL: Final = "http://127.0.0.1:8000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `dragoman record`."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--last", nargs="?", type=whole_number(1, _MOST), const=1, metavar="N", help="the last request, or the last N"
    )
    which.add_argument("--id", action="append", metavar="ID", help="the request with this id (repeatable)")
    which.add_argument("--filter", metavar="TERMS", help="the requests that fit, like 'status:5xx model:gpt-*'")
    which.add_argument("--session", metavar="ID", help="the requests of this session, all its agents")
    which.add_argument("--follow", action="store_true", help="every request from now on, until Ctrl-C")
    add_out(parser, "the file to write; never overwritten", required=True)
    parser.add_argument(
        "--redact", choices=("shape", "full", "none"), default="shape", help="how far texts are replaced"
    )
    parser.add_argument("--keep", action="append", default=[], metavar="TEXT", help="a text that stays (repeatable)")
    parser.add_argument(
        "--format",
        choices=("recording", "golden", "har", "curl", "python", "pytest"),
        default="recording",
        help="what to write",
    )
    parser.add_argument("--url", default=_URL, help="the gateway; its admin key is in DRAGOMAN_ADMIN_KEY")


def run(options: argparse.Namespace) -> int:
    """Runs `dragoman record`. Raises InvalidRequest."""
    if options.redact == "none" and not _agreed():
        return 2
    with open_client(options.url) as client:
        if options.follow:
            return _follow(client, options)
        ids = _chosen(client, options)
        if not ids:
            print("dragoman: no request fits", file=sys.stderr)
            return 1
        return _save(options, _exported(client, options, ids))


def _agreed() -> bool:
    """Asks whether conversations may be written as they are."""
    if not sys.stdin.isatty():
        print("dragoman: --redact none is possible only at a terminal, since it asks first", file=sys.stderr)
        return False
    return is_agreed("The file will hold the conversations as they are, without secrets. Go on?")


def _chosen(client: "httpx.Client", options: argparse.Namespace) -> list[str]:
    """Returns the ids that the options choose, oldest first."""
    if options.id:
        return [*options.id]
    terms = f"session:{options.session}" if options.session else options.filter or ""
    found = get(client, "requests", {"filter": f"{terms} live:no", "limit": options.last or _MOST})["requests"]
    return [one["id"] for one in reversed(found) if options.last or one["contents"] == "kept"]


def _exported(
    client: "httpx.Client", options: argparse.Namespace, ids: Sequence[str], seed: str | None = None
) -> dict[str, Any]:
    form = "recording" if options.format == "golden" else options.format
    query: dict[str, Any] = {"id": ids, "as": form, "redact": options.redact, "keep": options.keep}  # Any: as httpx
    return get(client, "export", query if seed is None else {**query, "seed": seed})


def _save(options: argparse.Namespace, found: Mapping[str, Any]) -> int:
    from gateway.core.errors import InvalidRequest
    from gateway.recording.export.golden import golden_files
    from gateway.recording.files import save_folder, save_text
    from gateway.recording.recording import read_recording

    if options.format == "golden":
        interactions = read_recording(found["content"].encode()).interactions()
        if len(interactions) != 1:
            raise InvalidRequest(f"A golden folder holds one request; {len(interactions)} were chosen.")
        size = save_folder(options.out, golden_files(interactions[0]))
    else:
        size = save_text(options.out, found["content"])
    print(f"{counted(found['requests'], 'request')}, {sized(size)} in {options.out}. {_redaction(options, found)}")
    _print_differences(found)
    return 1 if found["differences"] else 0


def _print_differences(found: Mapping[str, Any]) -> None:
    """Prints what the redacted requests no longer show, and what they would have to keep for it."""
    for difference in found["differences"]:
        print(f"  differs: {difference}", flush=True)
    for text in found["needed"]:
        print(f"  it would have to keep: --keep {text!r}", flush=True)


def _redaction(options: argparse.Namespace, found: Mapping[str, Any]) -> str:
    same = "no" if found["differences"] else "yes"
    if unchecked := found["unchecked"]:
        same = f"{same}, as far as is known: {counted(unchecked, 'request')} cannot be run again"
    removed = counted(found["removed"], "secret")
    return f"Redacted: {options.redact}, {removed} removed. Same notices and outcome: {same}."


def _follow(client: "httpx.Client", options: argparse.Namespace) -> int:
    """Saves each request when it has ended, so that nothing is lost by a kill."""
    import secrets

    import msgspec

    from gateway.core.errors import InvalidRequest
    from gateway.recording.files import RecordingFile
    from gateway.recording.recording import read_recording

    if options.format != "recording":
        raise InvalidRequest("--follow writes a recording; convert its file later.")
    file: RecordingFile | None = None
    count = 0
    # One for all, so that requests of one session stay requests of one session.
    seed = secrets.token_hex(16)
    try:
        for request_id in _ended(client):
            found = _exported(client, options, [request_id], seed)
            recording = read_recording(found["content"].encode())
            if file is None:
                # What comes later may no longer show the same.
                redaction = msgspec.structs.replace(recording.header.redaction, checked=False)
                file = RecordingFile(options.out, msgspec.structs.replace(recording.header, redaction=redaction))
            (one,) = recording.interactions()
            count += 1
            file.append(one.numbered(count))
            print(f"{count} {request_id} {'' if one.end is None else one.end.status}", flush=True)
            _print_differences(found)
    except KeyboardInterrupt:
        print(f"{counted(count, 'request')} in {options.out}")
    finally:
        if file is not None:
            file.close()
    return 0


def _ended(client: "httpx.Client") -> Iterator[str]:
    import json

    import httpx

    from gateway.core.errors import InvalidRequest

    try:
        with client.stream("GET", f"{API}/stream", timeout=None) as stream:
            if stream.status_code != 200:
                stream.read()
                raise InvalidRequest(str(stream.json().get("error", {}).get("message", stream.status_code)))
            print("Following; Ctrl-C ends it.", flush=True)
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    yield from _saved(json.loads(line.removeprefix("data: ")))
    except httpx.HTTPError as error:
        raise InvalidRequest(f"{client.base_url}: the gateway does not answer ({type(error).__name__})") from error


def _saved(change: Mapping[str, Any]) -> Iterator[str]:
    """Yields the id of a request that has ended. Says which one has no contents, and how many nobody was told of."""
    if missed := change.get("missed"):
        print(f"{counted(missed, 'request')} came too fast and may be missing; serve --record saves all.", flush=True)
    elif change["live"]:
        return
    elif change["contents"] == "kept":
        yield change["id"]
    else:
        print(f"{change['id']} is not saved: its contents are {change['contents'].replace('_', ' ')}.", flush=True)
