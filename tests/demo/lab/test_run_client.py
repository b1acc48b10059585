"""One run of a command: its environment, its folder, and its end."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from gateway.demo.lab.model import CUT_NOTES, NOTES, PICTURE, PROMPT
from gateway.demo.lab.run_client import Ran, filled, lab_environ, run_client, temporary_place

BASE: Final = "http://127.0.0.1:1"
OWN: Final = {
    "PATH": os.environ["PATH"],
    "HOME": "/home/someone",
    "OPENAI_API_KEY": "sk-own",
    "ANTHROPIC_API_KEY": "sk-own",
    "ANTHROPIC_AUTH_TOKEN": "sk-own",
    "GEMINI_API_KEY": "sk-own",
    "AWS_SECRET_ACCESS_KEY": "sk-own",
    "HTTPS_PROXY": "http://sk-own@proxy",
}


async def python(code: str, limit: float = 60) -> Ran:
    with temporary_place() as place:
        command = (sys.executable, "-c", code)
        return await run_client(command, place.folder, lab_environ(place, BASE, {}, dict(os.environ)), limit)


def test_no_key_and_no_folder_of_the_user_is_in_the_environment() -> None:
    with temporary_place() as place:
        environ = lab_environ(place, BASE, {"MINE": "1"}, OWN)
    assert [name for name, value in environ.items() if "sk-own" in value or "/home/someone" in value] == []
    assert (environ["PATH"], environ["HOME"], environ["MINE"]) == (OWN["PATH"], str(place.home), "1")


@pytest.mark.parametrize("case", [str.upper, str.lower], ids=["upper", "lower"])
def test_a_request_for_another_host_goes_nowhere(case: Callable[[str], str]) -> None:
    """curl reads HTTP_PROXY in small letters alone; Go, Python and Node read either."""
    with temporary_place() as place:
        environ = lab_environ(place, BASE, {}, OWN)
    proxies = {environ[case(name)] for name in ("http_proxy", "https_proxy", "all_proxy")}
    assert (proxies, environ[case("no_proxy")]) == ({"http://127.0.0.1:9"}, "127.0.0.1,localhost")


def test_every_address_is_the_one_of_the_laboratory() -> None:
    with temporary_place() as place:
        environ = lab_environ(place, BASE, {}, OWN)
    addresses = {name: value for name, value in environ.items() if name.endswith("BASE_URL")}
    assert addresses == {
        "OPENAI_BASE_URL": f"{BASE}/v1",
        "ANTHROPIC_BASE_URL": BASE,
        "GOOGLE_GEMINI_BASE_URL": BASE,
    }


def test_a_command_is_filled_and_the_prompt_is_last_without_a_place_of_its_own() -> None:
    assert filled(("x", "--url={base_url}", "{model}", "{prompt}", "{folder}"), BASE, "m", Path("/f")) == [
        "x",
        f"--url={BASE}",
        "m",
        PROMPT,
        str(Path("/f")),
    ]
    assert filled(("x", "-p"), BASE, "m", Path("/f")) == ["x", "-p", PROMPT]


def test_it_runs_where_the_files_are_and_these_are_removed() -> None:
    ran = asyncio.run(python("import os; print(os.getcwd(), *sorted(os.listdir()))"))
    folder, *files = ran.printed.split()
    assert (ran.status, files) == (0, sorted((NOTES, CUT_NOTES, PICTURE)))
    assert not Path(folder).exists()


async def test_what_it_prints_to_both_outputs_and_its_status_are_kept() -> None:
    ran = await python("import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)")
    assert (ran.status, ran.printed.split()) == (3, ["out", "err"])


async def test_the_rest_of_a_very_long_output_is_read_and_dropped() -> None:
    ran = await python("print('x' * 2**23)")
    assert (ran.status, len(ran.printed)) == (0, 2**22)


async def test_at_the_limit_it_is_ended_with_all_that_it_started() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    # The output of a child that stays would keep the pipe open, and this test would not end.
    assert await python(code, limit=0.5) == Ran(None, "")


# It leaves a process behind that holds its output open, and prints the id of that one.
LEAVING: Final = """
import subprocess, sys
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], **HOW)
print(left.pid, flush=True)
AND_THEN
"""
WAITS: Final = "left.wait()"


@pytest.mark.parametrize("how", ["{}", "{'start_new_session': True}"], ids=["of its group", "of its own session"])
@pytest.mark.parametrize(("then", "status"), [("", 0), (WAITS, None)], ids=["at its end", "at the limit"])
async def test_what_a_client_leaves_behind_is_ended_and_is_not_waited_for(
    how: str, then: str, status: int | None
) -> None:
    ran = await python(LEAVING.replace("HOW", how).replace("AND_THEN", then), limit=2 if then else 60)
    assert ran.status == status
    async with asyncio.timeout(10):
        while alive(int(ran.printed)):  # noqa: ASYNC110 (nothing tells of the end of another's child)
            await asyncio.sleep(0.01)


@pytest.mark.full
async def test_what_has_left_all_behind_does_not_hold_the_run_up() -> None:
    """A process that gives up the environment, too, is not known, and lives as long as it likes."""
    code = LEAVING.replace("HOW", "{'start_new_session': True, 'env': {}}").replace("AND_THEN", "")
    ran = await python(code)
    assert ran.status == 0
    os.kill(int(ran.printed), signal.SIGKILL)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended, and that nobody has asked for, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def test_a_program_that_is_not_there_is_an_error() -> None:
    with temporary_place() as place, pytest.raises(FileNotFoundError):
        await run_client(("no-such-program-here",), place.folder, {"PATH": ""}, 1)
