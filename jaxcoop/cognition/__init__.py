"""Agents that reason, wait, execute and are interrupted on a clock of their own (COOP²)."""
