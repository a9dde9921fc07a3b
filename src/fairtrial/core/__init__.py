"""Data types shared by all stages, and the interfaces of scorers and targets. No I/O and no heavy imports."""
