"""`fairtrial import` and its subcommands."""
