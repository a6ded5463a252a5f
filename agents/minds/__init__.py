"""Teams of agents that think, as players by name: their options, who makes their plans, how their episodes count."""
