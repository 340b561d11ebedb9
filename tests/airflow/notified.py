"""A notifier that keeps what it was told in a file, as a user's own or a provider's would send it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier

__all__ = ["KeepsIt"]


class KeepsIt(BaseNotifier):
    template_fields = ("text",)

    def __init__(self, *, file: str, text: str) -> None:
        super().__init__()
        self.file = file
        self.text = text

    def notify(self, context: Any) -> None:
        Path(self.file).write_text(self.text)

    async def async_notify(self, context: Any) -> None:
        self.notify(context)
