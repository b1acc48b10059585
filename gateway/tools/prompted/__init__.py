"""Tools for models that only write text: how they are told of them, and how their answers become calls."""
