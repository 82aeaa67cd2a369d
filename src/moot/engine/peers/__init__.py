"""Child runs on other hosts."""
