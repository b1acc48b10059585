"""Examines a backend by short questions: the probes as data, and what each answer means. Sends nothing itself."""
