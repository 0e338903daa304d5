"""Collections that come with twindex."""
