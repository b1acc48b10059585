"""Runs the optional local model: starts a model server from two installed packages, and builds the settings for it.

These modules are imported only on request, and the packages are no dependency: see docs/local-model.md.
"""

from gateway.local.packages import INSTALL, find_weights
from gateway.local.process import LocalModel, run_model
from gateway.local.settings import MODEL, RAW, backend_for_model, settings_for_model

__all__ = [
    "INSTALL",
    "MODEL",
    "RAW",
    "LocalModel",
    "backend_for_model",
    "find_weights",
    "run_model",
    "settings_for_model",
]
