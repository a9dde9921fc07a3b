"""`fairtrial optim` and `fairtrial baseline`."""
