"""Formats of tool calls as text, for models that only write text: the prompt, the history, and the parser."""
