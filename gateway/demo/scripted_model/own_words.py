"""Extracts the words that the user wrote from a user message of a client.

Clients add instructions for their models to a user's message: reminders, the state of the editor, files, rules for the
form of the response. A real model distinguishes them from the question, so the scripted one must do so as well. The
additions of each client are data here, identified by their tag or by their first line.
"""

import re
from collections.abc import Iterator
from typing import Final

# Tags around the client's additions.
_ADDED: Final = (
    # Qwen Code, Claude Code
    "system-reminder", "local-command-stdout", "local-command-stderr", "command-name", "command-message",
    # Cline and its descendants
    "environment_details", "mode_notice", "explicit_instructions", "file_content", "folder_content", "url_content",
    "file_mentions", "workspace_diagnostics", "terminal_output",
    # Codex
    "environment_context", "user_instructions", "INSTRUCTIONS", "permissions",
    # Copilot in a terminal
    "current_datetime",
    # editors
    "additional_data", "attached_files", "attachments", "attachment", "context", "editorContext", "editor_context",
    "project_context", "open_files", "reminder", "reminderInstructions", "rules", "available_skills", "examples",
)  # fmt: skip
# Tags around the user's text, where the client marks it.
_OWN: Final = ("task", "user_input", "user_message", "user_query", "userRequest", "user_request", "feedback")
_OPENING: Final = re.compile(rf"<({'|'.join((*_ADDED, *_OWN))})(?:\s[^<>]*)?>")
# aider appends rules to the user's words; the last rule names the language of the response.
_RULES: Final = re.compile(
    r"^(?:To suggest changes to a file you MUST|# \*SEARCH/REPLACE block\* Rules|# File editing rules|# V4A Diff Format"
    r"|ONLY return code using the|NEVER RETURN CODE!|Reply in \S+\.\s*\Z)",
    re.M,
)
_FOLDER: Final = re.compile(r"\b(?:working (?:in the )?directory|cwd)\b\W{0,3}?(/[^\s<>\"'`)]+)", re.I)
_FENCE: Final = re.compile(r"`{3,}|~{3,}")


def own_words(message: str) -> str:
    """Returns the user's words; empty when the client wrote the whole message. Fenced code is left out unless there is
    nothing else."""
    parts = list(_parts(message))
    own = "\n".join(text for tag, text in parts if tag in _OWN)
    words = own_words(own) if own else "".join(text for tag, text in parts if not tag)
    words = _RULES.split(words, 1)[0]
    prose = _without_code(words).strip() or words.strip()
    # A command line may pass its argument in quotes.
    return prose[1:-1] if prose.count('"') == 2 and prose[0] == prose[-1] == '"' else prose


def working_folder(text: str) -> str:
    """Returns the user's working folder if the client named it anywhere in its text, else an empty string."""
    found = _FOLDER.search(text)
    return found.group(1).rstrip("/.,;") if found else ""


def _parts(message: str) -> Iterator[tuple[str, str]]:
    """Yields the tagged parts with their tags, and the parts between them with an empty tag."""
    at = 0
    unclosed: set[str] = set()
    for opening in _OPENING.finditer(message):
        tag = opening.group(1)
        if opening.start() < at or tag in unclosed:
            continue
        end = message.find(f"</{tag}>", opening.end())
        if end < 0:
            unclosed.add(tag)
            continue
        yield "", message[at : opening.start()]
        yield tag, message[opening.end() : end]
        at = end + len(f"</{tag}>")
    yield "", message[at:]


def _without_code(text: str) -> str:
    """Returns the text outside fences; a fence without an end does not count."""
    outside: list[str] = []
    held: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line.strip())
        if not fence and found:
            fence = found.group()
        (held if fence else outside).append(line)
        if len(held) > 1 and found and found.group() == line.strip() and found.group().startswith(fence):
            held, fence = [], ""
    return "".join((*outside, *held))
