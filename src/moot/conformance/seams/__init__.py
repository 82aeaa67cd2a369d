"""seams."""
