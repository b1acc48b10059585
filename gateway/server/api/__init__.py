"""Builds the application: routes, the endpoint, responders, and the published OpenAPI document."""
