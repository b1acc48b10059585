"""What client and backend of one API write arrives as it was written, known to the gateway or not."""
