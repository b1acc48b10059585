"""Exports served chat requests as OpenTelemetry spans to a collector, where settings.json asks for them.

The event loop only records plain values; a separate thread encodes and sends them. So no failure there, in a library or
at the collector, affects a request. The names are those of the semantic conventions for HTTP and for generative AI
(`gen_ai.*`), and `dragoman.*` for our own. A span contains names and counts, never contents.
"""

from gateway.server.telemetry.tracing.tracing import Tracing, open_tracing

__all__ = ["Tracing", "open_tracing"]
