"""supervisors."""
