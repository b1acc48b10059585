"""Reports to operators: the request context, logs, metrics, the event bus and traces."""
