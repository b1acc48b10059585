"""What the inspector shows: summaries and views of requests, from their recorded bytes; and its page. No IO."""
