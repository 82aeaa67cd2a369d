"""moot agent dismiss and hire: what is left behind is named, with what takes it over."""

from pathlib import Path

from tests.support.cli.commands import Cli


def test_what_is_left_behind_is_told_and_taken_over(moot: Cli, tmp_path: Path) -> None:
    file = tmp_path / "clerk.md"
    file.write_text("---\nrole: clerk\n---\nBe brief.\n")
    hire = ["agent", "hire", "lea", "--from", str(file), "--portfolio", "hello",
            "--every", "weekday 08:30", "--on", "queue:lea-mail"]  # fmt: skip
    assert moot(*hire).code == 0
    [schedule] = [line.split("\t") for line in moot("schedule", "list", "--member", "lea").lines()]
    first, *left = moot("agent", "dismiss", "lea").lines()
    assert "host:lea is let go" in first
    assert [line.partition(" · ")[0] for line in left] == [
        "Paused: hello by schedule", "Paused: queue:lea-mail → hello",
    ]  # fmt: skip
    assert f"schedule resume {schedule[0]} --member NAME" in left[0]
    assert "queue bind lea-mail --flow hello --member NAME" in left[1]
    pushed = moot("item", "push", "lea-mail", "--subject", "quote")
    assert pushed.code == 0 and pushed.err.startswith("It waits: The queue lea-mail is paused")
    assert "queue bind lea-mail --flow hello --member NAME" in pushed.err
    refused = moot("schedule", "resume", schedule[0])
    assert refused.code == 1 and "no member host:lea" in refused.err
    again = moot(*hire[:7]).lines()
    assert f"schedule resume {schedule[0]}" in again[1] and "queue resume lea-mail" in again[2]
    assert moot("schedule", "resume", schedule[0], "--member", "lea").code == 0
    assert moot("queue", "resume", "lea-mail").code == 0
