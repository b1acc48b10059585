"""The Interactions dialect: decodes requests for interactions, and encodes events as steps."""
