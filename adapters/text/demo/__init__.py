"""Serves a demo backend for llama.cpp's completion wire."""
