"""Makes the encrypted content of a reasoning item, and recognises it when it comes back."""

import hashlib


def encrypted_content(item_id: str) -> str:
    """Return the content for the item with this id; no other backend and no other item has it."""
    return "demo-" + hashlib.sha256(item_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
