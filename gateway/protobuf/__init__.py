"""Describes protobuf schemas (an outline, the differences of two, a server's own report), and reads and writes values
of messages: texts, Structs, arguments of calls."""
