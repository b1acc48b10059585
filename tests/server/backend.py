"""The faulty backend with the events of the made-up wire."""

from gateway.testing.faulty import END, HEAD, Connection, FaultyBackend, Script, answer, chunk, faulty_backend

__all__ = ["END", "HEAD", "Connection", "FaultyBackend", "Script", "answer", "chunk", "events", "faulty_backend"]


def events(*texts: str) -> bytes:
    """Events of the made-up wire, as one chunk."""
    return chunk(b"".join(b"data: %s\n\n" % text.encode() for text in texts))
