"""Reads and writes values of protobuf messages for adapters of a protobuf wire: texts, Structs, arguments, images."""
