"""The files with the completions are what shtab writes for the commands as they are."""

import argparse
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import shtab

from gateway.cli import COMMANDS, _parser, main
from gateway.commands.completion import SHELLS, file_name
from tests.paths import ROOT


def written(shell: str) -> str:
    parser = _parser({})
    _complete_paths(parser)
    # The shells' own lines may end with blanks, which no file here does.
    return "\n".join(line.rstrip() for line in shtab.complete(parser, shell).splitlines()) + "\n"


def _complete_paths(parser: argparse.ArgumentParser) -> None:
    """Lets the arguments that are files and folders complete as such."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in set(action.choices.values()):
                _complete_paths(below)
        elif action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # shtab's own attribute
        elif action.type is Path or action.metavar == "FILE":
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab's own attribute


@pytest.mark.parametrize("shell", SHELLS)
def test_the_file_is_what_shtab_writes(shell: str, rewrite_golden: bool) -> None:
    file = ROOT / "gateway" / "commands" / "completions" / file_name(shell)
    if rewrite_golden:
        file.write_text(written(shell), encoding="utf-8")
    assert file.read_text(encoding="utf-8") == written(shell), "make golden writes it anew"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_the_file(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", shell])
    assert ended.value.code == 0 and capsys.readouterr().out == written(shell)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_accepts_the_file(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    file = ROOT / "gateway" / "commands" / "completions" / file_name(shell)
    run = subprocess.run([program, "-n", str(file)], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")


def test_bash_completes_every_command_and_an_option() -> None:
    program = shutil.which("bash")
    assert program is not None
    file = ROOT / "gateway" / "commands" / "completions" / file_name("bash")
    script = f"""source {file}
complete_words() {{
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _shtab_dragoman; printf '%s\\n' "${{COMPREPLY[@]}}"
}}
complete_words dragoman ''
complete_words dragoman serve --po
"""
    run = subprocess.run([program, "-c", script], capture_output=True, text=True, timeout=60, env=dict(os.environ))
    offered = run.stdout.split()
    assert set(COMMANDS) <= set(offered) and "--port" in offered, run.stderr
