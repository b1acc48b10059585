"""What the wires of several APIs are built of: bodies, whole answers, ids and pieces of calls, counts of tokens."""
