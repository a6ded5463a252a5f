"""Layouts of recorded Burrito data: those found beside it, else the ones of the package."""

import json
import tempfile
from functools import cache
from pathlib import Path


@cache
def layout_for(path, name):
    """What `Burrito(layout=...)` takes for the layout called `name` of the recorded file at `path`."""
    near = (path.parent / "layouts", *(path.parents[k] / "layouts" / "burrito" for k in (1, 2)))
    found = next((folder / f"{name}.json" for folder in near if (folder / f"{name}.json").is_file()), None)
    if found is None:
        return name
    recorded = json.loads(found.read_text())
    lines = [*recorded["grid"], ""]
    lines += [f"player {p['pos'][0]} {p['pos'][1]} {p['ori']}" for p in recorded["start_players"]]
    lines += [f"{o['name']} {o['pos'][0]} {o['pos'][1]}" for o in recorded["start_objects"]]
    text = Path(tempfile.mkdtemp()) / f"{name}.txt"
    text.write_text("\n".join([*lines, f"stack {recorded['start_num_plates']}"]) + "\n")
    return str(text)
