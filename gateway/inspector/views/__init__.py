"""Shows one captured request to a person: its messages at every stage, what was sent, and what came back."""
