"""docs/cli.md lists every command and option of the parser, with examples that the parser accepts."""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from gateway.cli import COMMANDS, _parser
from gateway.commands.parser import DEFAULT_SETTINGS, SETTINGS_HELP
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
# Without variables, as on the page: they only give defaults.
PARSER: Final = _parser({})
SECTIONS: Final = {
    heading: text for heading, text in re.findall(r"^## `dragoman ?([\w ]*)`\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
}


Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[Subparsers]:
    return (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))


def _below(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """Every command, also `COMMAND ACTION`: its name, its parser, and its help in the list of the commands."""
    for found in _subparsers(parser):
        helps = {choice.dest: choice.help or "" for choice in found._choices_actions}
        for word, below in found.choices.items():
            whole = f"{name} {word}".strip()
            yield whole, below, helps[word]
            yield from _below(below, whole)


PARSERS: Final = {"": PARSER, **{name: parser for name, parser, _ in _below(PARSER)}}
HELPS: Final = {name: text for name, _, text in _below(PARSER)}
PAGES: Final = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
SHELL_BLOCK: Final = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.M | re.S)
# A command in a line of a shell block, and one within a sentence.
SHELL_COMMAND: Final = re.compile(r"^(?:\$ )?(?:\w+=\S* )*(?:\.venv/bin/)?dragoman ([a-z].*)$", re.M)
NAMED_COMMAND: Final = re.compile(r"`(?:\.venv/bin/)?dragoman ([a-z][^`]*)`")
# The commands that do something by themselves.
LEAVES: Final = [name for name, parser in PARSERS.items() if name and not [*_subparsers(parser)]]


def _row(action: argparse.Action) -> tuple[str, str]:
    value = str(action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest))
    if not action.option_strings:
        return f"{value} ..." if action.nargs == "+" else value, action.help or ""
    names = ", ".join(action.option_strings)
    shown = value if action.metavar or action.choices else value.upper()
    return names if action.nargs == 0 else f"{names} {shown}", action.help or ""


def test_the_page_has_a_section_for_every_command_and_no_other() -> None:
    assert list(SECTIONS) == list(PARSERS)
    assert set(COMMANDS) == {name for name in PARSERS if name and " " not in name}


@pytest.mark.parametrize("command", PARSERS)
def test_a_section_lists_the_options_as_help_gives_them(command: str) -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", SECTIONS[command], re.M)
    actions = [one for one in PARSERS[command]._actions if not isinstance(one, argparse._SubParsersAction)]
    assert rows == [_row(action) for action in actions]


@pytest.mark.parametrize("command", HELPS)
def test_a_section_begins_with_the_help_of_its_command(command: str) -> None:
    said = HELPS[command]
    assert said
    assert SECTIONS[command].strip().startswith(f"{said[0].upper()}{said[1:]}.")


@pytest.mark.parametrize("command", LEAVES)
def test_the_settings_file_and_the_file_that_is_written_are_named_alike(command: str) -> None:
    """`--settings` and `-o` are the same option in each command that has them."""
    actions = {name: action for action in PARSERS[command]._actions for name in action.option_strings}
    if "--settings" in actions:
        settings = actions["--settings"]
        assert (settings.help, settings.default) == (SETTINGS_HELP, DEFAULT_SETTINGS)
    assert ("-o" in actions) == ("--out" in actions)
    assert "-o" not in actions or actions["-o"] is actions["--out"]
    assert "--output" not in actions or actions["--output"] is actions["-o"]


@pytest.mark.parametrize("command", LEAVES)
def test_every_option_has_an_example_that_the_parser_takes(command: str) -> None:
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", SECTIONS[command], re.S))
    lines = [shlex.split(line.partition("|")[2] or line, comments=True) for line in blocks.splitlines()]
    examples = [words[words.index("dragoman") + 1 :] for words in lines]
    assert examples
    for words in examples:
        assert " ".join(words).startswith(command)
        assert PARSER.parse_args(words).command == command.split()[0]
    shown = {word for words in examples for word in words}
    options = {name for action in PARSERS[command]._actions for name in action.option_strings}
    assert options - {"-h", "--help"} <= shown


def _words(command: str) -> list[str]:
    """The words of a command, without what the shell does with its output."""
    return shlex.split(re.split(r" (?:[|>&]|\d>)|;", command)[0], comments=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_can_be_typed(page: Path) -> None:
    for block in SHELL_BLOCK.findall(page.read_text(encoding="utf-8")):
        for command in SHELL_COMMAND.findall(block.replace("\\\n", " ")):
            words = _words(command)
            assert PARSER.parse_args(words).command == words[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_command_that_a_page_names_exists_with_its_options(page: Path) -> None:
    for command in NAMED_COMMAND.findall(page.read_text(encoding="utf-8")):
        words = _words(command)
        name = max((name for name in PARSERS if f"{' '.join(words)} ".startswith(f"{name} ")), key=len, default=None)
        assert name is not None, f"dragoman {command}"
        options = {option for action in PARSERS[name]._actions for option in action.option_strings}
        assert {word.partition("=")[0] for word in words if word.startswith("-")} - {"-"} <= options, command


def test_commands_are_found_on_the_pages() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(len(SHELL_COMMAND.findall(block)) for text in texts for block in SHELL_BLOCK.findall(text)) > 50
    assert sum(len(NAMED_COMMAND.findall(text)) for text in texts) > 50
