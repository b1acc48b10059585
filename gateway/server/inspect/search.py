"""Searches the contents of requests for words.

A word that stands only in a secret is not found: else the secret could be guessed, character by character.
"""

import json
from collections.abc import Sequence

from gateway.core.secrets import without_secrets
from gateway.server.inspect.filter import Word


def holds(texts: Sequence[bytes], words: Sequence[Word], secrets: Sequence[str]) -> bool:
    """Returns whether every word stands in one of the texts, in either case, and none that must be absent."""
    lowered = [text.lower() for text in texts]
    return all(_is_in(word.text, texts, lowered, secrets) != word.absent for word in words)


def _is_in(word: str, texts: Sequence[bytes], lowered: Sequence[bytes], secrets: Sequence[str]) -> bool:
    forms = [form.encode("utf-8", "replace").lower() for form in _forms(word)]
    found = [text for text, lower in zip(texts, lowered, strict=True) if any(form in lower for form in forms)]
    # Only where it stands is looked for secrets, which takes far longer.
    clean = (
        without_secrets(text.decode("utf-8", "replace"), secrets).encode("utf-8", "replace").lower() for text in found
    )
    return any(form in text for text in clean for form in forms)


def _forms(word: str) -> set[str]:
    """Returns a word as it may be written: as it is, or as JSON writes it."""
    return {word, json.dumps(word)[1:-1], json.dumps(word, ensure_ascii=False)[1:-1], word.lower(), word.upper()}
