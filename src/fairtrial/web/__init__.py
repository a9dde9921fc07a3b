"""The web interface, served from this machine."""
