"""Finds model servers and says what they are by their answers: for `dragoman init`, and for a port that is taken."""
