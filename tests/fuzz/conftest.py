"""Sets the number of examples of each target: few in the suite, FUZZ_EXAMPLES in `make fuzz`."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fuzz",
    deadline=None,
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "20000")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
