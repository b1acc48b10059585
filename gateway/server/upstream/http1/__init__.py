"""Implements a small HTTP/1.1 client for long-lived streams, which returns response bodies piece by piece.

`request_head` makes the bytes of a request, `response_decoder` decodes the bytes of a response, and `content_coding`
decompresses them, all without IO. `backend_connection` is one socket, and `pool` keeps it for the next request.
"""
