"""What Python says of a run is what the command line says."""

from __future__ import annotations

import gzip
import os
import random
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, strobe, strobe_json

import stroboscope

KERAS = ROOT / "testdata/captured/keras_fit"
FILE = KERAS / "train/plugins/profile/run/host.xplane.pb"


def test_the_report_is_that_of_the_command_line(profile):
    run = stroboscope.load(profile)
    report = strobe_json("report", profile)
    assert run.report() == report
    assert run.headline == report["headline"]
    assert run.steps.count == report["steps"]["count"]
    assert run.steps.median_ms == report["steps"].get("median_ms")
    shares = [(it.category, it.ms_per_step, it.share) for it in run.breakdown]
    assert shares == [tuple(it.values()) for it in report["breakdown"]]
    assert [(it.rule, it.why) for it in run.not_checked] == [
        (it["rule"], it["why"]) for it in report["not_checked"]
    ]
    assert [(it.kind, it.count, it.first) for it in run.notes] == [
        (it["kind"], it["count"], it["first"]) for it in report["notes"]
    ]
    assert [as_dict(it) for it in run.findings] == report["findings"]


def fix_as_dict(fix: stroboscope.Fix) -> dict:
    values = dict(vars(fix))
    file, line = values.pop("file"), values.pop("line")
    return {**values, "where": None if file is None else {"file": file, "line": line}}


def as_dict(finding: stroboscope.Finding, *, symptoms: bool = True) -> dict:
    evidence = [
        {"text": it.text, "table": it.table, "rows": list(it.rows), "events": list(it.events)}
        for it in finding.evidence
    ]
    plain = {
        name: value
        for name, value in vars(finding).items()
        if name not in ("evidence", "fix", "symptoms")
    }
    values = {**plain, "evidence": evidence, "fix": [fix_as_dict(it) for it in finding.fix]}
    if symptoms:
        values["symptoms"] = [as_dict(it, symptoms=False) for it in finding.symptoms]
    return values


def test_tables_are_those_of_the_command_line(one_of_few):
    run = stroboscope.load(one_of_few)
    assert run.tables == strobe_json("table", one_of_few)
    assert len(run.tables) >= 20
    for name in run.tables:
        rows = strobe_json("table", one_of_few, name)
        assert run[name].to_dicts() == rows, name
        assert len(run[name]) == len(rows)


def test_a_table_says_what_it_holds(keras):
    for name in keras:
        table = keras.table(name)
        assert table.name == name
        assert table.doc
        assert list(table.docs) == table.columns
        assert all(table.docs.values())
        assert not table.truncated


def test_a_report_is_the_callers_own(keras):
    keras.report()["findings"].clear()
    keras.findings.clear()
    assert keras.report()["findings"]
    assert keras.findings


def test_a_path_may_be_a_text_or_a_path_and_a_file_or_a_folder(keras):
    for path in (FILE, str(FILE), KERAS, os.fspath(KERAS)):
        run = stroboscope.load(path)
        assert run.path == Path(path)
        assert run.steps == keras.steps


def test_of_several_runs_the_newest_is_taken_and_the_others_are_named(tmp_path):
    for name in ("2026_01_02_03_04_05", "2026_02_02_03_04_05"):
        folder = tmp_path / "plugins/profile" / name
        folder.mkdir(parents=True)
        shutil.copy(FILE, folder)
    run = stroboscope.load(tmp_path)
    assert run.name == "2026_02_02_03_04_05"
    assert run.others == [tmp_path / "plugins/profile/2026_01_02_03_04_05"]
    assert "newest of 2 runs" in repr(run)


def check_same_error(path: object, kind: type[Exception]) -> None:
    with pytest.raises(kind) as raised:
        stroboscope.load(path)
    assert isinstance(raised.value, stroboscope.Error)
    done = strobe("report", path)
    assert done.returncode == 2
    assert f"error: {raised.value}\n" == done.stderr


def test_errors_are_those_of_the_command_line(tmp_path):
    check_same_error(tmp_path / "nowhere", FileNotFoundError)
    check_same_error(tmp_path, stroboscope.Error)
    (tmp_path / "broken.xplane.pb").write_bytes(b"not a profile at all" * 50)
    check_same_error(tmp_path / "broken.xplane.pb", stroboscope.Error)
    (tmp_path / "empty.xplane.pb").write_bytes(b"")
    check_same_error(tmp_path / "empty.xplane.pb", stroboscope.Error)


def test_what_is_no_path_is_a_type_error():
    for wrong in (None, 7, ["a"]):
        with pytest.raises(TypeError):
            stroboscope.load(wrong)


def test_cut_off_files_raise_or_say_what_was_damaged(tmp_path):
    whole = FILE.read_bytes()
    path = tmp_path / "cut.xplane.pb"
    noted = 0
    for share in range(1, 20):
        path.write_bytes(whole[: len(whole) * share // 20])
        try:
            run = stroboscope.load(path)
        except stroboscope.Error:
            continue
        noted += bool(run.notes)
        touch_everything(run)
    assert noted > 10


def test_damaged_bytes_raise_and_never_crash(tmp_path):
    whole = bytearray(FILE.read_bytes())
    path = tmp_path / "damaged.xplane.pb"
    chance = random.Random(7)
    opened = 0
    for _ in range(25):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 20, 400])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            run = stroboscope.load(path)
        except stroboscope.Error:
            continue
        opened += 1
        touch_everything(run)
    assert opened > 0


def touch_everything(run: stroboscope.Run) -> None:
    assert run._repr_html_()
    assert repr(run)
    for name in run:
        table = run[name]
        assert len(table.to_dicts()) == len(table)
        assert table._repr_html_()


def test_a_profile_without_steps_knows_nothing_of_them(tmp_path):
    # A plane with a name, and nothing on it.
    path = tmp_path / "bare.xplane.pb"
    name = b"/host:CPU"
    plane = b"\x12" + bytes([len(name)]) + name
    path.write_bytes(b"\x0a" + bytes([len(plane)]) + plane)
    run = stroboscope.load(path)
    assert run.report() == strobe_json("report", path)
    assert run.steps == stroboscope.Steps(count=0, found_by="none", confidence=0.0)
    assert run.steps.mean_ms is None
    assert run.breakdown == []
    touch_everything(run)


def test_zipped_profiles_are_read(tmp_path, keras):
    path = tmp_path / "host.xplane.pb.gz"
    path.write_bytes(gzip.compress(FILE.read_bytes()))
    assert stroboscope.load(path).steps == keras.steps


def test_unknown_tables_are_key_errors_that_name_the_others(keras):
    done = strobe("table", KERAS, "xyzzy")
    for ask in (keras.table, keras.__getitem__):
        with pytest.raises(KeyError) as raised:
            ask("xyzzy")
        assert isinstance(raised.value, stroboscope.Error)
        said, names = str(raised.value).split("\n  hint: there are: ")
        assert done.stderr.startswith(f"error: {said}\n")
        # The command line prints the events as well.
        assert set(names.split(", ")) < set(done.stderr.strip().split("there are: ")[1].split(", "))
    assert "nope" not in keras
    assert "op_time" in keras
    assert keras._ipython_key_completions_() == keras.tables


def test_a_run_prints_its_headline(keras):
    text = repr(keras)
    assert keras.headline in " ".join(text.split())
    assert keras.findings[0].rule in text
    assert keras.findings[0].gain in text


def test_gains_are_worded_as_on_the_command_line(profile):
    text = strobe("report", profile).stdout
    found = stroboscope.load(profile).findings
    # Of low ones the command line says one line, without a gain.
    for finding in found[:1] + [it for it in found if it.severity != "low"]:
        lines = [it.split() for it in text.splitlines()]
        assert any(line[1:] == [finding.rule, *finding.gain.split()] for line in lines), finding
