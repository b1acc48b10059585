"""`python -m gateway` is the `dragoman` command."""

from gateway.cli import main

main()
