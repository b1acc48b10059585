"""Defines the vocabulary of the gateway: conversations, events, notices, errors and policies, as frozen values."""
