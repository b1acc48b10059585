"""Runs `dragoman record`, `replay` and `minimise`: saves requests of a running gateway, and works with the files."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gateway.commands.counted import counted
from gateway.commands.inspector_client import API, get, open_client

if TYPE_CHECKING:
    import httpx

    from gateway.recording.recording import Recording
    from gateway.settings import Settings

RECORD_HELP: Final = "save requests of a running gateway in a file, redacted"
REPLAY_HELP: Final = "run recorded requests again without a network, or serve them as a fake backend"
MINIMISE_HELP: Final = "make a recording smaller while it still shows one thing"
_URL: Final = "http://127.0.0.1:8000"
_SUFFIX: Final = ".dragoman.jsonl"


def add_record(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `dragoman record`."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--last", nargs="?", type=int, const=1, metavar="N", help="the last request, or the last N")
    which.add_argument("--id", action="append", metavar="ID", help="the request with this id (repeatable)")
    which.add_argument("--filter", metavar="TERMS", help="the requests that fit, like 'status:5xx model:gpt-*'")
    which.add_argument("--follow", action="store_true", help="every request from now on, until Ctrl-C")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write; never overwritten")
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


def add_replay(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `dragoman replay`."""
    parser.add_argument("file", metavar="FILE", type=Path, help="a recording")
    parser.add_argument("--settings", type=Path, help="the settings file, for what is not built in")
    parser.add_argument("--serve", action="store_true", help="serve the recorded responses on a loopback port")
    parser.add_argument(
        "--as", choices=("backend", "openai"), default="backend", dest="side", help="the side that is served"
    )
    parser.add_argument(
        "--match", choices=("shape", "exact", "sequence"), default="shape", help="how a request finds its response"
    )
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="how fast; 0: without any pause")
    parser.add_argument("--port", type=int, default=0, help="the port to serve on (default any free one)")


def add_minimise(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `dragoman minimise`."""
    parser.add_argument("file", metavar="FILE", type=Path, help="a recording")
    parser.add_argument("--until", default="same", metavar="TEST", help="rule:CODE, code:CODE, status:N, or same")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file to write (default FILE with .min)")
    parser.add_argument("--settings", type=Path, help="the settings file, for what is not built in")


def record(options: argparse.Namespace) -> int:
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
    said = input("The file will hold the conversations as they are, without secrets. Go on? [y/N] ")
    return said.strip().lower() in ("y", "yes")


def _chosen(client: "httpx.Client", options: argparse.Namespace) -> list[str]:
    """Returns the ids that the options choose, oldest first."""
    if options.id:
        return [*options.id]
    terms = options.filter or ""
    found = get(client, "requests", {"filter": f"{terms} live:no", "limit": options.last or 1000})["requests"]
    return [one["id"] for one in reversed(found) if options.last or one["contents"] == "kept"]


def _exported(client: "httpx.Client", options: argparse.Namespace, ids: Sequence[str]) -> dict[str, Any]:
    form = "recording" if options.format == "golden" else options.format
    return get(client, "export", {"id": ids, "as": form, "redact": options.redact, "keep": options.keep})


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
    print(f"{counted(found['requests'], 'request')}, {_size(size)} in {options.out}. {_redaction(options, found)}")
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
    removed = counted(found["removed"], "secret")
    return f"Redacted: {options.redact}, {removed} removed. Same notices and outcome: {same}."


def _follow(client: "httpx.Client", options: argparse.Namespace) -> int:
    """Saves each request when it has ended, so that nothing is lost by a kill."""
    import msgspec

    from gateway.core.errors import InvalidRequest
    from gateway.recording.files import RecordingFile
    from gateway.recording.recording import read_recording

    if options.format != "recording":
        raise InvalidRequest("--follow writes a recording; convert its file later.")
    file: RecordingFile | None = None
    count = 0
    try:
        for request_id in _ended(client):
            found = _exported(client, options, [request_id])
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


def replay(options: argparse.Namespace) -> int:
    """Runs `dragoman replay`. Raises InvalidRequest and SettingsError."""
    from gateway.core.errors import GatewayError
    from gateway.recording.files import load_recording
    from gateway.recording.offline_run import run_offline
    from gateway.recording.outcome import compare_to_recorded

    recording = load_recording(options.file)
    if options.serve:
        return _serve(options, recording)
    settings = _settings(options.settings)
    different = False
    for interaction in recording.interactions():
        try:
            checks = compare_to_recorded(interaction, run_offline(interaction, settings))
        except GatewayError as error:
            print(f"{interaction.request.id}: {error.message}")
            different = True
            continue
        shown = [f"{check.subject}: {check.size}, {'differs' if check.difference else 'same'}." for check in checks]
        print(f"{interaction.request.id} {' '.join(shown)}")
        for check in checks:
            if check.difference:
                print(f"  {check.subject}: {check.difference}")
                different = True
    return 1 if different else 0


def _serve(options: argparse.Namespace, recording: "Recording") -> int:
    import asyncio
    import contextlib

    from gateway.recording.playback import serve_recording

    async def serve() -> None:
        async with serve_recording(recording, options.side, options.match, options.speed, options.port) as playing:
            print(
                f"{counted(len(recording.interactions()), 'request')} on {playing.base_url}; Ctrl-C ends it",
                flush=True,
            )
            await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())
    return 0


def minimise(options: argparse.Namespace) -> int:
    """Runs `dragoman minimise`. Raises InvalidRequest and SettingsError."""
    from gateway.recording import minimise as search
    from gateway.recording.files import load_recording, save_recording

    found = search.minimise(recording := load_recording(options.file), options.until, _settings(options.settings))
    out = options.out or options.file.with_name(
        options.file.name.removesuffix(".dragoman.jsonl") + ".min.dragoman.jsonl"
    )
    size = save_recording(out, found.recording)
    (one,) = found.recording.interactions()
    before = sum(len(each.body or b"") for each in recording.interactions())
    print(f"{before} -> {len(one.body or b'')} bytes, {counted(found.tries, 'try')}. Wrote {_size(size)} in {out}.")
    if not found.minimal:
        print(f"  stopped after {search.MOST_TRIES} tries: a smaller one may exist")
    return 0


def _settings(path: Path | None) -> "Settings | None":
    from gateway.settings import load_settings

    return None if path is None else load_settings(path)


def _size(size: int) -> str:
    return f"{size} bytes" if size < 10_000 else f"{size // 1000:,} KB"


ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "record": record,
    "replay": replay,
    "minimise": minimise,
}
