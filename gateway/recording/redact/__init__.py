"""Redacts recordings: secrets always, and texts so that the recording still shows the same fault."""
