"""Jobs of hundreds of rounds with the real agents (make long-jobs)."""
