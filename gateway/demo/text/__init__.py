"""The demo backend for llama.cpp's completion wire."""
