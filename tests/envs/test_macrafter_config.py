"""Requirements of MA-Crafter: names, texts and TOML files; what is refused, and how it is said."""

import pytest

from jaxcoop.core import make
from jaxcoop.envs.macrafter import config
from jaxcoop.envs.macrafter.types import Material

FILES = {
    "nested list": ('[resources.tree]\ntools = [["a"]]', r"tool of tree \['a'\]; allowed: iron_pickaxe"),
    "table as tool": ("[resources.tree]\ntools = [{a = 1}]", r"tool of tree \{'a': 1\}; allowed: iron_pickaxe"),
    "deep": ("a = " + "[" * 50_000, r"requirements .*deep.toml'?: the file cannot be read"),
    "digits": ("[resources.tree]\nagents = " + "9" * 5000, r"requirements .*: the file cannot be read"),
    "key": ("[resource.tree]\nagents = 1", r"unknown key in .* 'resource'; allowed: resources"),
    "entry": ("[resources.tree]\nagent = 1", r"unknown key of tree in .* 'agent'; allowed: agents"),
    "mode": ('[resources.tree]\nmode = ["all"]', r"unknown mode of tree \['all'\]; allowed: all, any"),
    "negative": ("[resources.iron]\nagents = -2", r"agents -2 of iron: must be a whole number from 1 to 1,024"),
    "long name": (f"[resources.{'x' * 100_000}]\nagents = 1", r"^unknown resource .{0,200}; allowed: coal"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_wrong_is_refused_in_a_line_that_names_what_and_what_is_allowed(tmp_path, name):
    content, message = FILES[name]
    path = tmp_path / f"{name}.toml"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as refused:
        make("macrafter", requirements=str(path))
    assert len(str(refused.value)) < 600 and "\n" not in str(refused.value)


TEXTS = {
    "tree:--5": r"agents '--5' of tree: must be a whole number from 1",
    "tree:" + "9" * 5000: r"agents '999.*' of tree: must be a whole number from 1",
    "tree:٣": r"agents '٣' of tree: must be a whole number from 1",
    "tree:1,tree:2": r"requirements 'tree:2': tree is listed twice",
    "a\0b.toml": r"requirements .*: the file cannot be read \(embedded null byte\)",
    "pape": r"unknown requirements 'pape'; .*did you mean 'paper'",
    "tree:1:axe": r"unknown tool of tree 'axe'",
    "tree:1:wood_pickaxe|stone_pickaxe+iron_pickaxe": r"join them by \+ \(all\) or by \|",
}


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:20].encode("unicode_escape").decode())
def test_a_text_that_is_wrong_is_refused_by_the_name_of_the_option(text):
    with pytest.raises(ValueError, match=TEXTS[text]) as refused:
        make("macrafter", requirements=text)
    assert len(str(refused.value)) < 600


def test_points_go_by_the_best_of_several_tools():
    points = config.half_points(config.canonical("stone:2:wood_pickaxe|iron_pickaxe"))
    assert points[Material.STONE] == 2 * 10 * 2 * (1 + 3 / 2)


def test_a_huge_file_is_not_read(tmp_path):
    path = tmp_path / "huge.toml"
    path.write_text("#" * 2_000_000)
    with pytest.raises(ValueError, match=r"it has 2,000,000 bytes; must be at most 1,000,000"):
        make("macrafter", requirements=str(path))


def test_a_file_with_a_byte_order_mark_and_capitals_in_its_name_is_read(tmp_path):
    path = tmp_path / "MINE.TOML"
    path.write_text('[resources.coal]\nagents = 3\ntools = ["wood_pickaxe"]\n', encoding="utf-8-sig")
    assert make("macrafter", requirements=str(path)).requirements == "coal:3:wood_pickaxe"


def test_an_environment_holds_the_content_of_its_file_and_equals_one_made_from_the_text(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[resources.iron]\nagents = 2\ntools = ["stone_pickaxe", "iron_pickaxe"]\nmode = "any"\n')
    assert make("macrafter", requirements=str(path)) == make(
        "macrafter", requirements="iron:2:stone_pickaxe|iron_pickaxe"
    )
