"""`hdr4me reproduce`: parts of it, and input that it refuses."""

from __future__ import annotations

import json

import pytest

from hdr4me.cli import main


def test_case_study_as_json_and_nothing_else(tmp_path, capsys):
    code = main(["reproduce", "case-study", "--output", str(tmp_path / "r"), "--workers", "1", "--json"])
    captured = capsys.readouterr()
    assert code == 0
    document = json.loads(captured.out)
    assert document["case_study"][0]["printed"] == "533.210"
    assert {claim["name"] for claim in document["claims"]} >= {"framework-models-case-study"}
    assert "report.html" in document["files"]
    assert (tmp_path / "r" / "figure-3.svg").is_file()


def test_drawing_again_keeps_the_record_of_the_run(tmp_path, capsys):
    call = ["reproduce", "fig3", "--output", str(tmp_path), "--workers", "1", "--json"]
    assert main(call) == 0
    first = json.loads((tmp_path / "run.json").read_text())
    assert first["kept"] == 0
    first["seconds"] = 1234.5
    (tmp_path / "run.json").write_text(json.dumps(first))
    assert main(call) == 0
    assert json.loads((tmp_path / "run.json").read_text()) == first
    assert main([*call, "--seed", "2"]) == 0  # another run: its own record
    assert json.loads((tmp_path / "run.json").read_text())["seconds"] < 1000


def test_table2_for_a_person(tmp_path, capsys):
    assert main(["reproduce", "table2", "--output", str(tmp_path), "--workers", "1"]) == 0
    captured = capsys.readouterr()
    assert "0.644" in captured.out
    assert "wrote" in captured.err


def test_the_command_in_the_report_has_no_paths(tmp_path, capsys):
    assert (
        main(["reproduce", "table2", "--output", str(tmp_path), "--workers", "1", "--normalize", "fixed"])
        == 0
    )
    command = json.loads((tmp_path / "run.json").read_text())["command"]
    assert command == "hdr4me reproduce table2 --scale quick --seed 1 --normalize fixed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig9"], "TARGET 'fig9' is not allowed"),
        (["fig3", "--scale", "huge"], "--scale 'huge' is not allowed"),
        (["fig3", "--lambda-choice", "z9"], "--lambda-choice 'z9' is not allowed"),
        (["fig3", "--normalize", "none"], "--normalize 'none' is not allowed"),
        (["fig3", "--workers", "-1"], "--workers -1 is not allowed"),
        (["fig3", "--seed", "-1"], "--seed -1 is not allowed"),
        (["fig3", "--cov19", "no-such-file"], "there is no such file"),
    ],
)
def test_bad_input_is_one_plain_line(tmp_path, capsys, arguments, message):
    output = tmp_path / "out"
    assert main(["reproduce", *arguments, "--output", str(output)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not output.exists()
