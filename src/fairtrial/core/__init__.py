"""The nouns that flow between the stages, and the contracts of the parts. No I/O, no heavy import."""
