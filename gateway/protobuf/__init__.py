"""Describes protobuf schemas: an outline, the differences of two, and what a server says of its own."""
