"""Turn stored rows into numbers: summaries, comparisons, rankings and gates."""
