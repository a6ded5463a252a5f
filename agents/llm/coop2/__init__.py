"""Language models in cognitive teams: what they are asked, and how replies become plans and array words.

Host side, no jax.  `prompts` writes what is asked from `facts`; `parsing` reads replies; `words` turns plans into rows
of the environment's skills and back; `worlds` describes a state of the environment; `catalogue` shows every prompt.
"""
