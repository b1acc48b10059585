"""Lists the faults of the demo backends in one catalogue, which a marker, an address and the test kit ask."""
