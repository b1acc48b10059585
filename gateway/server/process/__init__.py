"""Runs the serving process: start, workers, signals, reload and limits of the operating system."""
