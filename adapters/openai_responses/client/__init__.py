"""The OpenAI Responses dialect: decodes requests, and encodes events as SSE or as one JSON response."""
