"""Export formats for a run, one file per format; each has `write(run, file)`."""

SCHEMA_VERSION = 2  # of every JSON document: raised when a key is removed or changes meaning, not when one is added
