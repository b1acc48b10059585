"""What the gateway knows about tool calls, whatever backend or dialect they come from."""
