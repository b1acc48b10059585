"""Reads and writes values of protobuf messages for every adapter of a protobuf wire: texts, Structs, arguments."""
