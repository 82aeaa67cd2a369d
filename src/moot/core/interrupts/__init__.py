"""interrupts."""
