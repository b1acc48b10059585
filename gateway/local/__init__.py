"""The optional local model: two installed packages in, a model server beside the gateway and the settings for it out.

Nothing here is imported unless it is asked for, and the packages are no dependency: see docs/local-model.md.
"""

from gateway.local.packages import INSTALL, find_weights
from gateway.local.process import LocalModel, run_model
from gateway.local.route import MODEL, RAW, backend_for_model, settings_for_model

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
