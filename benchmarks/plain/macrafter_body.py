"""The body of a plain MA-Crafter player: what it holds, and how it lives on (section 6)."""

from jaxcoop.benchmarks.plain.macrafter_codes import ACHIEVEMENTS, CAPS, DOWN, ITEM_PAY, START

HEALTH, FOOD, DRINK, ENERGY = range(4)


class Player:
    """An agent and its body."""

    __slots__ = (
        *("cell", "facing", "inventory", "achievements", "sleeping", "removed", "last_health", "paid"),
        *("hunger", "thirst", "fatigue", "recover"),
    )

    def __init__(self, cell: int) -> None:
        self.cell, self.facing = cell, DOWN
        self.inventory, self.achievements = list(START), [0] * len(ACHIEVEMENTS)
        self.sleeping = self.removed = False
        self.last_health = self.inventory[HEALTH]
        self.paid = [0] * len(ITEM_PAY)  # of the rewarded items, what has been paid for
        self.hunger = self.thirst = self.fatigue = self.recover = 0.0

    def live(self, vitals: bool) -> None:
        """V1 to V4, after the player's action; without `vitals` nothing is eaten, drunk or slept for."""
        if vitals:
            self._tire()
        self._recover()
        self.inventory = [min(max(0, have), cap) for have, cap in zip(self.inventory, CAPS)]
        if self.inventory[HEALTH] < self.last_health:
            self.sleeping = False
        self.last_health = self.inventory[HEALTH]

    def _tire(self) -> None:
        """V1."""
        inventory, asleep = self.inventory, self.sleeping
        self.hunger += 0.5 if asleep else 1
        if self.hunger > 25:
            self.hunger = 0
            inventory[FOOD] -= 1
        self.thirst += 0.5 if asleep else 1
        if self.thirst > 20:
            self.thirst = 0
            inventory[DRINK] -= 1
        self.fatigue = min(self.fatigue - 1, 0) if asleep else self.fatigue + 1
        if self.fatigue < -10:
            self.fatigue = 0
            inventory[ENERGY] += 1
        if self.fatigue > 30:
            self.fatigue = 0
            inventory[ENERGY] -= 1

    def _recover(self) -> None:
        """V2."""
        inventory, asleep = self.inventory, self.sleeping
        if inventory[FOOD] > 0 and inventory[DRINK] > 0 and (inventory[ENERGY] > 0 or asleep):
            self.recover += 2 if asleep else 1
        else:
            self.recover -= 0.5 if asleep else 1
        if self.recover > 25:
            self.recover = 0
            inventory[HEALTH] += 1
        if self.recover < -15:
            self.recover = 0
            inventory[HEALTH] = max(0, inventory[HEALTH] - 1)
