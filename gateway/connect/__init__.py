"""Configures clients for a gateway: what each of them needs, as data, and how their files are changed and restored."""
