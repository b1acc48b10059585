"""Recordings of requests: the file format, redaction, the offline run, comparison and minimising; sans-IO."""
