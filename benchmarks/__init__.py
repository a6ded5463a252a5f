"""Measurements: speed of rollouts, cost of host calls, and the tables of papers."""
