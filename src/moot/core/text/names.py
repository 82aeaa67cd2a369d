"""Names of participants: what a name may look like, and whose it is."""

from moot.core.text.confusables import is_blank


def is_name(name: str) -> bool:
    """Whether it can be seen and told from others: no blanks, no marks that do not show; and reads
    as no place of files or addresses."""
    blank = is_blank(name) or any(mark.isspace() for mark in name)
    place = "/" in name or "\\" in name or not name.rpartition(":")[2].strip(".")
    return name.isprintable() and not blank and not place


def is_person(name: str) -> bool:
    return name == "user" or name.startswith("user:")


def full_name(name: str) -> str:
    """A short name means an agent of this host."""
    return name if ":" in name or name in ("user", "system") else f"host:{name}"
