"""Language-model agents: what they are asked and how replies become actions, one module for each environment."""
