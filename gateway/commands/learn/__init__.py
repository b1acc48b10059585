"""Proposes the mapping of a protobuf backend from recorded exchanges, and proves it by replay."""
