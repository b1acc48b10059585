"""Holds what the clients for HTTP/1.1 and HTTP/2 share.

`origin` and `headers` are parts of a request's head, `connect` opens a connection, with the contexts of `tls`, and
`errors` defines every error.
"""
