"""Access control: API keys, request checks, concurrency and rate limits."""
