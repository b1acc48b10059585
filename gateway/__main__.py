"""Makes `python -m gateway` the `dragoman` command."""

from gateway.cli import main

main()
