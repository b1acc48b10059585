"""How long the targets run: briefly in the suite, for as many examples as FUZZ_EXAMPLES says in `make fuzz`."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fuzz",
    deadline=None,
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "20000")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
