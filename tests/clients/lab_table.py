"""Runs the laboratory over the real clients and writes the tables of docs/lab.md.

`CLIENTS=.venv/clients python -m tests.clients.lab_table [TITLE ...]` runs these clients, or all, which takes some
minutes each; the reports of the others are those that it left in build/lab.
"""

import os
import re
import subprocess
import sys
from datetime import date
from typing import Final

import msgspec

from gateway.commands.lab_report import table
from gateway.demo.lab.events import EVENTS
from gateway.demo.lab.outcome import Outcome
from gateway.demo.lab.report import Report
from tests.clients.lab_clients import PAGE, LabClient, path_with
from tests.paths import ROOT

_REPORTS: Final = ROOT / "build" / "lab"
_PAGE: Final = ROOT / "docs" / "lab.md"
_TABLES: Final = re.compile(r"(?<=<!-- tables -->\n).*?(?=<!-- end of the tables -->)", re.S)
_OPTIONS: Final = ("--jobs", "3", "--format", "json")


def examine(client: LabClient) -> None:
    """Runs one client against every event and keeps its report."""
    _REPORTS.mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, "PATH": os.pathsep.join((*path_with(client), os.environ["PATH"]))}
    command = (sys.executable, "-m", "gateway", "lab", *_OPTIONS, *client.options, "--", *client.command)
    ran = subprocess.run(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, check=False)
    if ran.returncode not in (0, 1):
        raise SystemExit(f"{client.title}: exit status {ran.returncode}")
    (_REPORTS / f"{client.title}.json").write_bytes(ran.stdout)


def tables() -> str:
    """Returns the tables of all reports: the clients, what is sent to every API, and what is sent to some."""
    found = {client: report(client) for client in PAGE if (_REPORTS / f"{client.title}.json").exists()}
    clients = table(("client", "version", "API", "reads a file with", "run on"), map(_about, found.items()))
    heads = ("event", *(client.title for client in found))
    rows = ((f"`{event.name}`", *(_cell(one, event.name) for one in found.values())) for event in EVENTS)
    return f"\n{clients}\n{table(heads, rows)}\n"


def report(client: LabClient) -> Report:
    """Returns the report of a client that was run."""
    return msgspec.json.decode((_REPORTS / f"{client.title}.json").read_bytes(), type=Report)


def _about(found: tuple[LabClient, Report]) -> tuple[str, ...]:
    client, told = found
    day = date.fromtimestamp((_REPORTS / f"{client.title}.json").stat().st_mtime)
    return client.title, client.version, told.title, f"`{told.tool}`" if told.tool else "-", str(day)


def _cell(told: Report, name: str) -> str:
    one = next((one for one in told.outcomes if one.event == name), None)
    return "-" if one is None or one.verdict == "not met" else _shown(one)


def _shown(one: Outcome) -> str:
    tries = f" ({one.again})" if one.again else ""
    return f"**{one.verdict}**{tries}" if one.verdict in ("accepted", "hung", "silent") else f"{one.verdict}{tries}"


def main(titles: list[str]) -> None:
    """Runs the clients with these titles, or all, and writes the page."""
    for client in PAGE:
        if client.program.exists() and (not titles or client.title in titles):
            examine(client)
    text = _PAGE.read_text(encoding="utf-8")
    _PAGE.write_text(_TABLES.sub(lambda _: tables(), text), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
