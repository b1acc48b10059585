"""`dragoman state usage` shows what keys have spent, of which budget, until when."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Final

import pytest

from bench.load_test.store_servers import PROGRAMS, server
from gateway.core.conversation import Json
from gateway.server.access.budgets import window_of
from gateway.server.state.budget_store import Claim
from gateway.server.state.open_store import open_budgets
from gateway.settings import StateSettings
from tests.commands.test_state import run

KEYS: Final[dict[str, Json]] = {
    "alice": {"budget": {"tokens_per_day": 1000, "money_per_month": 2.5}},
    "*": {"budget": {"tokens_per_month": 70}},
}


def written(folder: Path, state: Json, keys: Json) -> Path:
    path = folder / "settings.json"
    (folder / "keys").write_text("alice:a-secret\nbob:b-secret\n")
    model = {"backend": "b", "price": {"input": 1, "output": 2}}
    parts = {
        "state": state,
        "keys": keys,
        "server": {"api_keys_file": str(folder / "keys")},
        "backends": {"b": {"adapter": "openai_chat", "base_url": "http://localhost/v1"}},
        "models": {"m": model},
    }
    path.write_text(json.dumps(parts))
    return path


@pytest.fixture(params=["sqlite", *PROGRAMS])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    async with AsyncExitStack() as stack:
        if request.param == "sqlite":
            yield f"sqlite:{tmp_path / 'state.db'}"
        else:
            yield (await stack.enter_async_context(server(request.param, tmp_path))).url


async def test_what_is_spent_is_shown_as_text_and_as_json(url: str, tmp_path: Path) -> None:
    now = time.time()
    day, month = window_of("tokens_per_day", now), window_of("money_per_month", now)
    async with aclosing(open_budgets(StateSettings(store=url), None, {})) as store:
        claims = [
            Claim("tokens_per_day", day, 1000, 300, 400),
            Claim("money_per_month", month, 2_500_000, 1_234_567, 1_234_567, ends=True),
        ]
        await store.reserve("alice", claims)
    settings = written(tmp_path, {"store": url}, KEYS)
    status, shown, errors = await asyncio.to_thread(run, settings, "usage")
    assert (status, errors) == (0, "")
    lines = [line.split() for line in shown.splitlines()]
    assert lines[1] == ["key", "budget", "spent", "reserved", "limit", "until"]
    assert [line[:5] for line in lines[2:]] == [
        ["alice", "tokens_per_day", "300", "175", "1000"],
        ["alice", "money_per_month", "1.234567", "0.000000", "2.500000"],
        ["bob", "tokens_per_month", "0", "0", "70"],
    ]
    assert all(line[5].endswith("T00:00:00Z") for line in lines[2:]) and "secret" not in shown
    status, shown, errors = await asyncio.to_thread(run, settings, "usage", "--json")
    report = json.loads(shown)
    assert (status, errors, report["format"], len(report["usage"])) == (0, "", 1, 3)
    assert report["usage"][1]["spent"] == 1_234_567 and report["usage"][1]["limit"] == 2_500_000
    assert report["usage"][1]["starts"] < report["usage"][1]["ends"]


@pytest.mark.parametrize(
    ("state", "told"),
    [({}, "state.store is memory"), ({"store": "valkey://127.0.0.1:1"}, "the store is down")],
)
def test_a_store_that_cannot_be_reached_is_one_line(tmp_path: Path, state: Json, told: str) -> None:
    status, shown, errors = run(written(tmp_path, state, KEYS), "usage")
    assert (status, shown) == (2, "")
    assert told in errors and errors.count("\n") == 1


def test_without_budgets_there_are_no_rows(tmp_path: Path) -> None:
    status, shown, errors = run(written(tmp_path, {"store": f"sqlite:{tmp_path / 's.db'}"}, {}), "usage")
    assert (status, errors, len(shown.splitlines())) == (0, "", 2)
