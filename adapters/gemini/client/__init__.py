"""The Gemini dialect: decodes generateContent requests, and encodes events as server-sent events or as JSON."""
