"""Defines the paths of the project's files."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
