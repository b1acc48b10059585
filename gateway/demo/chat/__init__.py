"""The demo backend for OpenAI chat completions."""
