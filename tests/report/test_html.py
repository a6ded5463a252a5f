"""The report page: complete, self-contained, escaped."""

import html.parser

import pytest

from jaxcoop.report import style
from jaxcoop.report.html import report_html, write_report
from jaxcoop.report.tables import table

EVIL = "<script>alert('x')</script> $title & \"q\""


def figure():
    with style.styled():
        made = style.new_figure(2, 1)
        made.subplots().plot([0, 1])
    return made


def page(**content):
    return report_html(
        EVIL, tables=[table(EVIL, ["a", EVIL], [["x", EVIL]])], notes=[EVIL], manifest={"k": EVIL}, **content
    )


def test_every_text_is_escaped():
    text = page(figures={EVIL: figure()})
    assert "<script" not in text and text.count("&lt;script&gt;") >= 7


def test_the_page_loads_nothing_from_elsewhere():
    found = []

    class Sources(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.extend(value for name, value in attributes if name in ("src", "href"))

    Sources().feed(page(figures={"f": figure(), "g": style.as_svg(figure())}))
    outside = [s for s in found if not s.startswith(("data:image/png;base64,", "#"))]
    assert len(found) > 0 and outside == []


def test_tags_are_balanced():
    open_tags = []

    class Balance(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            if tag not in ("meta", "img"):
                open_tags.append(tag)

        def handle_endtag(self, tag):
            assert open_tags.pop() == tag

    Balance().feed(page(figures={"f": figure()}))
    assert open_tags == []


def test_numbers_are_aligned_and_the_manifest_is_shown():
    text = report_html("t", tables=[table("T", ["name", "n"], [["x", 1234]])], manifest={"seed": 7})
    assert '<td class="number">1,234</td>' in text and "&quot;seed&quot;: 7" in text


def test_pictures_that_are_none_are_refused():
    with pytest.raises(ValueError, match="not a PNG"):
        report_html("t", figures={"f": b"GIF89a"})
    with pytest.raises(ValueError, match="not a plain SVG"):
        report_html("t", figures={"f": "<svg onload=alert(1)></svg>"})


def test_the_page_is_written_even_with_unpaired_surrogates(tmp_path):
    path = write_report(tmp_path / "report.html", "a\ud800b")
    assert "a?b" in path.read_text()
