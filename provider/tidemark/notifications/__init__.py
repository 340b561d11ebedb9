"""Notifications about streams, for callbacks of tasks and DAGs and for deadlines."""
