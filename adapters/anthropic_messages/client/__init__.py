"""The dialect of Anthropic's Messages API: converts between its JSON and conversations, events and errors."""
