"""Environments.  Each room stands alone; the engine finds them by entry points."""
