"""The result cache: answers of earlier queries, and answers from the logs of tables."""
