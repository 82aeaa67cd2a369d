"""moot.toml: every mistake is named with its line and the word that was most likely meant."""

from pathlib import Path

import pytest

from moot.config.project import ProjectError, parse_project
from moot.config.settings import Settings, load_settings

WHOLE = """
[server]
port = 0
demo_wps = 12.5
[limits]
max_depth = 3
[models.local]
url = "http://localhost:11434/v1"
model = "llama3.1"
options = {num_ctx = 8192}
[models.rude]
provider = "demo"
script = ["Hello.", {tool = "look", arguments = {at = 1}}]
fail = {turn = 3, kind = "timeout"}
[prices."gpt-x*"]
input = 2.5
output = 10
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server]\nport = 1\nprot = 2\n", "moot.toml:3: unknown word 'prot' in [server] — did"),
        ("[modles.x]\n", "moot.toml:1: unknown word 'modles' in the file — did you mean 'models'?"),
        ("[server]\nrate_limit = 3\n", "moot.toml:2: 'rate_limit' belongs under [limits]"),
        ('[server]\nport = "x"\n', "moot.toml:2: port: Expected `int`, got `str`"),
        ("[models.x]\nmodel='m'\ntemprature = 1\n", "moot.toml:3: unknown word 'temprature'"),
        ("[models.x]\nmodel='m'\ntemperature = 9\n", "moot.toml:3: temperature: Expected"),
        (
            '[models.x]\nmodel="m"\nscript=["a"]\n',
            "moot.toml:3: 'script' is for provider = \"demo\"",
        ),
        ('[models.x]\nprovider="demo"\nfail={kind="tmeout"}\n', "moot.toml:3: fail.kind: Invalid"),
        ('[prices."gpt*"]\ninput = 1\n', "moot.toml:1: the table: Object missing required field"),
        ("[server\n", "moot.toml:1: this is not TOML"),
        ("server = 3\n", "moot.toml:1: [server] must be a table"),
        ("[models]\nx = 1\n", "moot.toml:2: [models.x] must be a table"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ProjectError) as mistake:
        parse_project(text, Path("moot.toml"), Settings)
    assert str(mistake.value).startswith(said)


def test_a_whole_file_is_read() -> None:
    found = parse_project(WHOLE, Path("moot.toml"), Settings)
    assert found.settings == {"port": 0, "demo_wps": 12.5, "max_depth": 3}
    assert found.models["local"].options == {"num_ctx": 8192}
    assert found.models["rude"].fail is not None
    assert found.prices["gpt-x*"].output == 10


def test_the_file_is_under_the_environment_and_that_under_a_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moot.toml").write_text(
        '[server]\nport = 1\nhost = "a"\ndatabase = "p.db"\nkeepalive_s = 3\n'
    )
    found = load_settings({"database": "flag.db"}, {"MOOT_PORT": "2", "MOOT_DATABASE": "e.db"})
    assert (found.database, found.port, found.host, found.keepalive_s) == ("flag.db", 2, "a", 3)
    assert load_settings(environment={}).database == "p.db"
