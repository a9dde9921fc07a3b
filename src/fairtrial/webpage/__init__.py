"""Web pages written by models: extracted from answers, sealed off, and checked in a browser."""
