"""Renders a conversation as one text, parses it back, and escapes content so that no text can forge a turn."""
