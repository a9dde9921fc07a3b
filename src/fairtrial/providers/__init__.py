"""Knowledge about model providers: how to reach them, what parameters their models accept, what replies mean."""
