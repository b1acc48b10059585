"""What the APIs of OpenAI have in common: errors, fields, lists of models and usage."""
