"""Passes requests of listed routes to a backend as they are: nothing is translated, little is read."""
