"""Spark work: change sets read, streams shown, targets written once."""
