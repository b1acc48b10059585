"""The demo backend for Google's generateContent."""
