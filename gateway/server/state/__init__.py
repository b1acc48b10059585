"""State that workers share."""
