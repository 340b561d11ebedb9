"""Which answers may be reused, and which ones a log has."""
