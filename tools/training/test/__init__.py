"""Runs two steps of every stage on made-up sound."""
