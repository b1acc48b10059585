"""Served chat requests -> OpenTelemetry spans at a collector, where settings.json asks for them.

The event loop only notes plain values; a thread of its own encodes them and sends them away. So nothing that goes wrong
there, in a library or at the collector, reaches a request. The names are those of the semantic conventions for HTTP and
for generative AI (`gen_ai.*`), and `dragoman.*` for what is ours. A span holds names and counts, never contents.
"""

from gateway.server.tracing.trace import Trace
from gateway.server.tracing.tracing import Tracing, open_tracing

__all__ = ["Trace", "Tracing", "open_tracing"]
