"""Scripted policies, one module for each environment; `jaxcoop.agents.registry` finds them by its name."""
