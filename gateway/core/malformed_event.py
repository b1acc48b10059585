"""Describes an unreadable event as a notice by which an operator can find it, without quoting its content."""

import hashlib

from gateway.core.notices import Notice


def malformed_event(data: bytes) -> Notice:
    """Returns a notice with the size of the event and the beginning of its digest."""
    digest = hashlib.sha256(data).hexdigest()[:12]
    detail = f"an event of {len(data)} bytes (SHA-256 {digest}...) cannot be read"
    return Notice("backend", "failed", "MALFORMED_EVENT", detail, level="warning")
