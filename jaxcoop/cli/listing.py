"""`jaxcoop list`: environments with their presets and agents."""

import dataclasses

from jaxcoop.agents.llm.registry import can_talk
from jaxcoop.agents.minds.makers import list_minds
from jaxcoop.agents.registry import list_policies
from jaxcoop.cli.arguments import parse
from jaxcoop.core.registry import EnvSpec, get_spec, list_envs
from jaxcoop.report.tables import table


@dataclasses.dataclass(frozen=True)
class ListOptions:
    """Options of `jaxcoop list`."""

    env: str | None = None  # show one environment with its presets, options and agents


def main(arguments: list[str]) -> None:
    """Print the environments, or everything about one of them (`jaxcoop list dining`)."""
    if arguments and not arguments[0].startswith("-"):
        arguments = ["--env", *arguments]
    chosen = parse(ListOptions, arguments, prog="jaxcoop list", description="What there is.").env
    if chosen is None:
        rows = [(spec.name, spec.summary, spec.origin, len(spec.presets)) for spec in list_envs().values()]
        table("Environments (jaxcoop list NAME shows one)", ("name", "what", "rules", "presets"), rows).print()
        return
    spec = get_spec(chosen)
    print(f"{spec.name}: {spec.summary}" + (f" [{spec.origin}]" if spec.origin else ""))
    options = [(name, str(default)) for name, default in spec.options().items()]
    table("Options and defaults", ("option", "default"), options).print()
    if spec.presets:
        presets = [(name, _settings(spec, name)) for name in spec.presets]
        table("Presets (--preset)", ("preset", "options that differ from the defaults"), presets).print()
        if spec.preset_note:
            print(f"also: {spec.preset_note}")
    agents = [*list_policies(spec.name).items(), *list_minds(spec.name).items()]
    if can_talk(spec.name):
        agents.append(("llm", "a language model, named by --model"))
    table("Agents (--agent)", ("agent", "what it plays"), agents).print()


def _settings(spec: EnvSpec, preset: str) -> str:
    defaults = spec.options()
    differing = {k: v for k, v in spec.presets[preset].items() if v != defaults[k]}
    return ", ".join(f"{k}={v}" for k, v in differing.items()) or "none"
