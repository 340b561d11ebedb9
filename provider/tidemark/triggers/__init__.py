"""Triggers: what waits in the triggerer for streams; they read store and logs in threads, never on the event loop."""
