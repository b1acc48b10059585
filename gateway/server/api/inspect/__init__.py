"""Adds the routes of the inspector: its page, and the data that the page asks for."""
