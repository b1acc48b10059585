"""Formats measured figures with their bounds as lines of a table, and checks the bounds."""

import math
from collections.abc import Iterable, Sequence

import msgspec


class Figure(msgspec.Struct, frozen=True):
    """One measured or counted figure. Without bounds it is only reported."""

    what: str
    seen: float
    most: float = math.inf
    least: float = -math.inf

    @property
    def kept(self) -> bool:
        return self.least <= self.seen <= self.most

    @property
    def bound(self) -> str:
        """The bounds as text."""
        if self.least == self.most:
            return number(self.most)
        bounds = [("at least", self.least), ("at most", self.most)]
        return ", ".join(f"{words} {number(bound)}" for words, bound in bounds if math.isfinite(bound)) or "-"


def table(part: str, figures: Iterable[Figure]) -> str:
    """Formats the figures as Markdown."""
    lines = [f"| {part} | seen | promised | kept |", "|---|---|---|---|"]
    return "\n".join([*lines, *(_line(figure) for figure in figures)])


def _line(figure: Figure) -> str:
    kept = "-" if figure.bound == "-" else "yes" if figure.kept else "**no**"
    return f"| {figure.what} | {number(figure.seen)} | {figure.bound} | {kept} |"


def number(value: float) -> str:
    """Formats a number with its significant digits."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"


def quantile(values: Sequence[float], share: float) -> float:
    """Returns the value that this share of the values does not exceed, or NaN without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Returns the slope of the best-fitting straight line through the points, or 0 for fewer than two points."""
    if len(points) < 2:
        return 0.0
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread if spread else 0.0
