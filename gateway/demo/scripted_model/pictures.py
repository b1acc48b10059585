"""Describes pictures by what the first bytes of their files say."""

import base64
from collections.abc import Sequence

from gateway.core.data_url import DataUrl, held_data
from gateway.core.image_size import read_image_size


def description(urls: Sequence[str]) -> str:
    """Returns a sentence for each picture that is not at an address: its type, and its width and height in pixels."""
    return "\n".join(map(_sentence, filter(None, map(held_data, urls))))


def _sentence(held: DataUrl) -> str:
    size = read_image_size(base64.b64decode(held.data))
    of_size = "of unknown size" if size is None else f"of {size[0]} by {size[1]} pixels"
    return f"The picture is {held.media_type.removeprefix('image/').upper()} {of_size}."
