"""What notebooks show: well formed, escaped, without scripts, nothing from elsewhere."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser

import pytest
from conftest import ROOT

import stroboscope

EVIL = "</style><script>alert(1)</script><img src=x onerror='alert(2)'>\"&"
TAGS = set(
    [
        "div",
        "style",
        "p",
        "b",
        "i",
        "span",
        "pre",
        "details",
        "summary",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    ]
)
ATTRIBUTES = {"class", "style", "title", "role", "aria-label"}


class Checked(HTMLParser):
    """Collects what a browser would see; fails where a tag is left open or is none of ours."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.titles = ""
        self.open: list[str] = []
        self.text = ""
        self.widths: list[float] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS, tag
        for name, value in attrs:
            assert name in ATTRIBUTES, name
            if name == "title":
                self.titles += value + " "
            if name == "style":
                assert not re.search(r"url\(|expression|@import", value)
                self.widths += [float(it) for it in re.findall(r"width:([\d.]+)%", value)]
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            assert "@import" not in data and "url(" not in data and "<" not in data
        else:
            self.text += data + " "


def test_a_run_shows_headline_bar_and_findings(profile):
    run = stroboscope.load(profile)
    html = run._repr_html_()
    seen = Checked(html)
    assert "http" not in html
    assert run.headline in seen.text
    if run.breakdown:
        assert abs(sum(seen.widths) - 100) < 0.1
    for share in run.breakdown:
        assert (share.category in seen.text) or share.share == 0
    for finding in run.findings:
        assert finding.rule in seen.text
        assert finding.gain in seen.text
    for fix in run.findings[0].fix if run.findings else ():
        assert (fix.edit or "") in seen.text
    for each in run.not_checked:
        assert each.why in seen.text


def test_tables_show_their_first_rows(one_of_few):
    run = stroboscope.load(one_of_few)
    for name in run:
        table = run[name]
        seen = Checked(table._repr_html_())
        assert all(it in seen.text for it in table.columns)
        assert ("more rows" in seen.text) == (len(table) > 20)


def test_names_from_a_profile_stay_text(tmp_path, keras):
    folder = tmp_path / "<script>alert(1)<" / "img onerror=x>"
    folder.mkdir(parents=True)
    shutil.copy(
        ROOT / "testdata/captured/keras_fit/train/plugins/profile/run/host.xplane.pb", folder
    )
    run = stroboscope.load(folder)
    assert str(folder) in Checked(run._repr_html_()).text

    quoted = EVIL.replace("'", "''")
    double = EVIL.replace('"', '""')
    table = keras.sql(f"SELECT '{quoted}' AS \"{double}\"")
    seen = Checked(table._repr_html_())
    # The column's name, and the cell, which is shortened.
    assert seen.text.count(EVIL) == 1
    assert seen.titles.count(EVIL) == 1

    finding = stroboscope.Finding(
        rule=EVIL,
        severity=EVIL,
        title=EVIL,
        takes_ms_per_step=1.0,
        cost_ms_per_step=1.0,
        gain=EVIL,
        speedup_if_fixed=None,
        speedup_low=None,
        speedup_high=None,
        step_after_ms=None,
        confidence=0.5,
        evidence=(stroboscope.Evidence(EVIL),),
        fix=(stroboscope.Fix(EVIL, EVIL),),
    )
    assert Checked(finding._repr_html_()).text.count(EVIL) == 6


def test_a_flame_graph_is_as_wide_as_its_time(sampled):
    rows = sampled["python_stack"].to_dicts()
    rows = [it for it in rows if it["lane"] == 0 and it["step"] is not None]
    total = sum(it["dur_ps"] for it in rows if it["depth"] == 0)
    for order in ("left-heavy", "time"):
        flame = sampled.flame(order=order)
        assert flame.total_ms == total / 1e9
        html = flame._repr_html_()
        seen = Checked(html)
        assert "http" not in html
        assert "write_log" in seen.text
        assert "train.py" in seen.titles
        # The outermost call fills the width.
        assert float(re.findall(r"calc\(([\d.]+)% - 1px\);top:0px", html)[0]) > 99
    assert "write_log" in repr(sampled.flame())
    steps = {it["step"] for it in rows}
    parts = sum(sampled.flame(step=it).total_ms for it in steps)
    assert abs(parts - total / 1e9) < 1e-6


def test_a_flame_graph_of_another_thread_and_of_scopes(sampled, keras):
    others = {it["thread"] for it in sampled["python_stack"].to_dicts() if it["role"] == "input"}
    seen = Checked(sampled.flame(thread=min(others))._repr_html_())
    assert "read_example" in seen.text
    scopes = keras.flame("scopes")
    in_steps = sum(
        it["total_ps"]
        for it in keras["scope_step"].to_dicts()
        if it["scope"] == "/" and it["step"] is not None
    )
    assert abs(scopes.total_ms - in_steps / 1e9) < 1e-6
    assert "gradient_tape" in Checked(scopes._repr_html_()).text
    # Without stacks it says how to get them.
    assert "strobe run" in Checked(keras.flame()._repr_html_()).text
    for wrong in ({"of": "x"}, {"order": "x"}, {"of": "scopes", "side": "x"}):
        with pytest.raises(ValueError, match="must be"):
            keras.flame(**wrong)


def test_names_in_a_flame_graph_stay_text():
    from stroboscope import _flame

    root = _flame._Node("all", ps=10)
    root.children = [_flame._Node(EVIL, EVIL, "python", ps=10)]
    seen = Checked(_flame.Flame(root, EVIL)._repr_html_())
    assert seen.text.count(EVIL) == 2
    assert seen.titles.count(EVIL) == 2


def test_every_category_has_its_two_colours():
    from stroboscope import _html

    html = _html._STYLE
    assert len(_html.COLOURS) == 10
    for light, dark in _html.COLOURS.values():
        assert light in html
        assert dark in html
