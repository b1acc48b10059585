"""The Ollama dialect: decodes chat and generate requests, and encodes events as lines of JSON or as one JSON object."""
