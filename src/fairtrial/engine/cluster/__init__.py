"""Carry out trials in other processes: a driver lends limits and money to workers and stores what they report."""
