"""The ordered, pure passes over a conversation: validate, repair, classify, trim, flatten."""
