"""The bytes of an event that cannot be read -> a notice that lets an operator find it, and shows nothing of it."""

import hashlib

from gateway.notices import Notice


def malformed_event(data: bytes) -> Notice:
    """Its size and the beginning of its digest."""
    digest = hashlib.sha256(data).hexdigest()[:12]
    detail = f"an event of {len(data)} bytes (SHA-256 {digest}...) cannot be read"
    return Notice("backend", "failed", "MALFORMED_EVENT", detail, level="warning")
