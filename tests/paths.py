"""Where the files of the project are."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
