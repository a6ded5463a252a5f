"""How long simulated calls take, by name or by numbers.

Numbers are sections of docs/coop2.md.
"""

import math

from jaxcoop.cognition.latency import Latency
from jaxcoop.cognition.types import Call
from jaxcoop.core.registry import brief, unknown

MEASURED = "measured"
"""Calls take what they took; for language models only."""

RECORDED = "recorded:"
"""Begins the name of a run folder whose calls are the model; whoever reads folders replaces it by numbers."""

_SPREAD = (0.35, 0.35, 0.35, 0.35)

MODELS: dict[str, Latency] = {
    model.name: model
    for model in (
        Latency(),
        Latency("simulated-gpt-5.4-mini", (700.0, 1500.0, 1100.0, 700.0), _SPREAD),
        Latency("simulated-llama-4-scout", (1100.0, 2400.0, 1700.0, 1100.0), _SPREAD),
        Latency("simulated-gpt-5.4", (1500.0, 3200.0, 2300.0, 1500.0), _SPREAD),
    )
}
"""Named models.  Medians of plan calls of the simulated ones are decision seconds per plan in the individual structure
of MA-Crafter with three agents, as published with COOP²; the other kinds and the spread are invented."""

FORMS = f"{', '.join(MODELS)}, constant:MS, lognormal:MS:SIGMA (each one number or four: text,plan,decide,statement)"


def latency_of(name: str | None, *, language: bool = False) -> Latency | None:
    """The model of a name, or of numbers; None: what the answers say.

    Without a name, calls of a language model are measured and others constant.  Raises `ValueError` for another name.
    """
    if name is None:
        return None if language else MODELS["constant"]
    if name == MEASURED:
        if language:
            return None
        raise ValueError(f"latency {MEASURED!r}: scripted planners answer at once; name a model: {FORMS}")
    if name in MODELS:
        return MODELS[name]
    kind, *parts = name.split(":")
    if kind == "constant" and len(parts) == 1:
        return Latency(name, _four(name, parts[0]))
    if kind == "lognormal" and len(parts) == 2:
        return Latency(name, _four(name, parts[0]), _four(name, parts[1]))
    raise unknown("latency", name, (*MODELS, MEASURED, "constant:MS", "lognormal:MS:SIGMA", "recorded:FOLDER"))


def in_numbers(model: Latency) -> str:
    """The name from which `latency_of` makes the same model again."""
    medians, sigmas = (",".join(f"{value:.6g}" for value in values) for values in (model.median, model.sigma))
    return f"lognormal:{medians}:{sigmas}"


def _four(name: str, text: str) -> tuple[float, float, float, float]:
    """One number for all kinds of calls, or one for each."""
    try:
        values = tuple(map(float, text.split(",")))
    except ValueError:
        values = ()
    if len(values) not in (1, len(Call)) or not all(map(math.isfinite, values)):
        raise ValueError(f"latency {brief(name)}: {text!r} must be one number or {len(Call)} with commas between them")
    return values * 4 if len(values) == 1 else values  # type: ignore[return-value]  # four of them
