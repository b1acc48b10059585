"""Writes the requests of a recording as curl commands for any POSIX shell, whose bodies are the recorded bytes."""

import base64
import re
from typing import Final

from gateway.recording.lines import RecordingError
from gateway.recording.recording import Interaction, Recording

_KEY: Final = '"Authorization: Bearer $DRAGOMAN_KEY"'
# Headers that change the answer.
SENT_HEADERS: Final = (
    "content-type",
    "accept",
    "anthropic-version",
    "anthropic-beta",
    "openai-beta",
    "x-dragoman-explain",
    "x-dragoman-require",
)
_WIDTH: Final = 76

# The gateway that exported requests are sent to, unless `DRAGOMAN_URL` says otherwise.
LOCAL: Final = "http://127.0.0.1:8000"
# A shell and Python read nothing in it as their own.
_PLAIN: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,260}")


def curl_commands(recording: Recording, url: str = LOCAL) -> str:
    """Returns one command for each request, to `url` (a plain address) unless the shell has a `DRAGOMAN_URL`. The key
    is taken from the shell's own `DRAGOMAN_KEY`; no secret and no text of a client is ever read as a word of the shell.
    Raises RecordingError for a request without its body."""
    return "\n".join(_command(one, url) for one in recording.interactions())


def _command(interaction: Interaction, url: str) -> str:
    request, body = interaction.request, interaction.body
    if body is None:
        raise RecordingError(f"The body of the request {request.id} is not in the recording.")
    headers = {"content-type": "application/json", **request.headers}
    options = [f"-H {quoted(f'{name}: {value}')}" for name, value in headers.items() if name in SENT_HEADERS]
    path = quoted(request.path if request.path.startswith("/") else f"/{request.path}")
    to = f'"${{DRAGOMAN_URL:-{url}}}"{path}'
    curl = " ".join([f"curl -sS -N -X {quoted(request.method)} --data-binary @-", *options, f"-H {_KEY}", to])
    return f"{_piped(body, curl)}\n"


def quoted(text: str) -> str:
    """Returns a text as one word of a POSIX shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def _piped(body: bytes, curl: str) -> str:
    """Returns the command that feeds these bytes to another: a quoted here-document, without the line end that it adds.
    Shells drop NUL, and some change what is no text, so that such bytes go as base64."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text or "\r" in text:
        encoded = base64.b64encode(body).decode()
        lines = [encoded[at : at + _WIDTH] for at in range(0, len(encoded), _WIDTH)]
        return f"base64 -d <<'BODY' | {curl}\n" + "".join(f"{line}\n" for line in lines) + "BODY"
    end = "BODY"
    while end in text:
        end += "_"
    return f"head -c {len(body)} <<'{end}' | {curl}\n{text}\n{end}"


def plain_address(url: str) -> str:
    """Returns `scheme://host:port` as it is, and `LOCAL` for anything else: a client chooses its Host."""
    return url if _PLAIN.fullmatch(url) else LOCAL
