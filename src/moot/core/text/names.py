"""Check and classify the names of participants."""

from moot.core.text.confusables import has_invisible


def is_name(name: str) -> bool:
    """Return whether a name is visible, has no spaces and does not look like a path."""
    blank = has_invisible(name) or any(mark.isspace() for mark in name)
    path = "/" in name or "\\" in name or not name.rpartition(":")[2].strip(".")
    return name.isprintable() and not blank and not path


def is_person(name: str) -> bool:
    return name == "user" or name.startswith("user:")


def full_name(name: str) -> str:
    """Return the full name; a short one means an agent of this host."""
    return name if ":" in name or name in ("user", "system") else f"host:{name}"
