"""Sequential simulators in plain Python: peers in measurements of speed, and oracles in tests.

Each is written from the behaviour notes of its environment, one episode at a time, and shares no code with the
compiled rules, so that neither can inherit a mistake of the other.
"""
