"""Shows the requests of all workers, whichever of them is asked: each answers the others on a Unix socket."""
