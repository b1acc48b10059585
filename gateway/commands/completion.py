"""Runs `dragoman completion`: prints what a shell needs to complete the commands."""

import argparse
from importlib.resources import files
from typing import Final

HELP: Final = "print the completions of the commands for a shell"
# The shell, and the suffix of its file in gateway/commands/completions.
SHELLS: Final = {"bash": "bash", "zsh": "zsh", "fish": "fish", "powershell": "ps1"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("shell", metavar="SHELL", choices=tuple(SHELLS), help="bash, zsh, fish or powershell")


def run(options: argparse.Namespace) -> int:
    """Prints the file of the shell."""
    print(
        files("gateway.commands").joinpath("completions", file_name(options.shell)).read_text(encoding="utf-8"), end=""
    )
    return 0


def file_name(shell: str) -> str:
    """Returns the name of a shell's file."""
    return f"dragoman.{SHELLS[shell]}"
