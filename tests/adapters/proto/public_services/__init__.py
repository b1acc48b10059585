"""Public services with gRPC: servers that speak as their documents say, and scenarios that every client passes."""
