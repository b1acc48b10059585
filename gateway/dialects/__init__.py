"""Client dialects: each converts a client's request into a Conversation and events into that client's bytes."""
