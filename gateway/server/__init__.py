"""The only package with sockets, a clock, ids and logging: it serves clients and calls backends."""
