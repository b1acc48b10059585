"""Serves a demo backend for gRPC over HTTP/2: a made-up service of proto/demo/."""
