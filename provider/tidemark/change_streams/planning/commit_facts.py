"""The facts for change streams that the writer of a commit put into its userMetadata."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.foreign_json import foreign_object, plain_text

__all__ = ["NOTHING_SAID", "CommitFacts", "commit_facts"]


@dataclass(frozen=True)
class CommitFacts:
    """Tag and flags of a transaction, as `tidemark.change_metadata.transaction_metadata` writes them."""

    tag: str = ""
    exclude: bool = False
    system: bool = False
    ttl: bool = False


NOTHING_SAID = CommitFacts()


def commit_facts(user_metadata: str | None) -> CommitFacts:
    """The facts that a commit states. Anything that is not of our form states nothing, as others use the field too."""
    ours = foreign_object(user_metadata).get("tidemark")
    if not isinstance(ours, dict):
        return NOTHING_SAID
    tag = ours.get("transaction_tag")
    return CommitFacts(
        tag=plain_text(tag) if isinstance(tag, str) else "",
        exclude=ours.get("exclude_txn_from_change_streams") is True,
        system=ours.get("is_system_transaction") is True,
        ttl=ours.get("ttl") is True,
    )
