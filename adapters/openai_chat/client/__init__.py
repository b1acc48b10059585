"""The OpenAI chat completions dialect: decodes requests, and encodes events as SSE or as one JSON response."""
