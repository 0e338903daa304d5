"""Values to what a person reads."""
