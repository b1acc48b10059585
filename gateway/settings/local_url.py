"""Names the URL of a bound address for this machine."""


def local_url(host: str, port: int) -> str:
    """Returns the URL under which this machine reaches what is bound to a host, with or without brackets, and port."""
    host = host.strip("[]")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
