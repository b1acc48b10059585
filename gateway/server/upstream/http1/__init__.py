"""A small HTTP/1.1 client for long-lived streams, which returns response bodies piece by piece.

`origin` and `request_head` make the bytes of a request, `response_decoder` decodes the bytes of a response, and
`content_coding` decompresses them, all without IO. `backend_connection` is one socket, `connect` opens it, `pool` keeps
it for the next request, and `errors` defines every error.
"""
