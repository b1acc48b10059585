"""Runs the commands of the command line that are more than one function: their arguments, and what they print."""
