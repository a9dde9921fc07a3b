"""Programs of others, started so that they never outlive fairtrial."""
