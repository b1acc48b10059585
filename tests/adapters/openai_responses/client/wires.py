"""A backend of another dialect, for requests that some backends cannot receive."""

from typing import Final

from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions

NATIVE: Final = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20)
