"""Implements a small HTTP/2 client for long-lived streams, on the frames of `h2`; bodies are read piece by piece.

`request_head` makes the fields of a request, `frames` cuts the bytes of a connection into frames and refuses floods,
`multiplexer` turns them into the responses of many streams (`stream_response`), all without IO. `connection` is one
socket, and `pool` shares connections between requests.
"""
