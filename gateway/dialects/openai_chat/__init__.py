"""The OpenAI chat completions dialect: request bytes in, Conversation out; events in, SSE or one JSON answer out."""
