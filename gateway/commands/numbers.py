"""Reads numbers of the command line within their bounds."""

import argparse
from collections.abc import Callable


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Returns a type for argparse, which refuses everything but whole numbers from `low` to `high`."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text[:18]) <= high):
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {low} to {high}")
        return int(text)

    return read


def speed(text: str) -> float:
    """Returns a number that is 0 or more; a type for argparse."""
    try:
        read = float(text)
    except ValueError:
        read = -1
    if not 0 <= read < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return read
