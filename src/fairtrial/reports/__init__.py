"""What people and programs read, one file per format: each has `write(run, file)`."""

SCHEMA_VERSION = 1  # of every JSON document: counted on when a name goes or means something else, not when one is added
