"""Agents: policies on the device and language-model planners at the host."""
