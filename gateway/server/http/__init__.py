"""A small HTTP/1.1 client for long-lived streams: addresses and requests in, answers piece by piece out.

`address` and `request` make the bytes that are sent, `response` reads those that come, without any IO. `connection` is
one socket, `dial` opens it, `pool` keeps it for the next request, and `errors` names everything that can go wrong.
"""
