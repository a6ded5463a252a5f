"""Tests of jaxcoop.planning."""
