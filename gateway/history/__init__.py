"""Holds the ordered, pure passes over a conversation: validate, repair, classify, trim, render as a transcript."""
