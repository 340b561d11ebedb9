"""Sensors: what a task waits for; they read logs, never start a JVM."""
