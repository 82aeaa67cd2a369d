"""moot key: made, listed, revoked; a secret is printed once and alone."""

import json
from pathlib import Path

from tests.support.cli.commands import Cli
from tests.support.servers import ServerProcess, server_environment


def test_a_new_key_is_the_only_thing_on_stdout(moot: Cli) -> None:
    done = moot("key", "create", "--name", "reader", "--scope", "runs:read", "--as", "host:ada")
    [secret] = done.lines()
    assert secret.startswith("hk_")
    assert secret not in done.err
    assert moot("run", "list", "--token", secret).code == 0
    refused = moot("run", "hello", "--token", secret)
    assert refused.code == 1
    assert "runs:create" in refused.err


def test_a_test_key_has_its_own_prefix(moot: Cli) -> None:
    made = json.loads(moot("key", "create", "--name", "t", "--test", "--json").out)
    assert made["key"].startswith("hk_test_")
    assert made["test"] is True


def test_an_unknown_scope_gets_the_nearest(moot: Cli) -> None:
    done = moot("key", "create", "--name", "x", "--scope", "runs:raed")
    assert "Did you mean 'runs:read'?" in done.err


def test_a_key_of_another_tenant_sees_none_of_our_runs(moot: Cli) -> None:
    moot("run", "hello")
    [secret] = moot("key", "create", "--name", "other", "--tenant", "other").lines()
    assert moot("run", "list", MOOT_KEY=secret).out == ""


def test_a_revoked_key_is_refused(moot: Cli) -> None:
    [secret] = moot("key", "create", "--name", "short-lived").lines()
    assert "is revoked" in moot("key", "revoke", "short-lived").out
    done = moot("run", "list", "--token", secret)
    assert done.code == 1
    assert "revoked" in done.err
    assert any("short-lived\tdefault\trevoked" in line for line in moot("key", "list").lines())


def test_the_last_administrators_key_is_revoked_only_when_confirmed(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, [], server_environment())
    moot = Cli(tmp_path)
    moot("key", "create", "--name", "ordinary")
    refused = moot("key", "revoke", "local")
    assert refused.code == 2
    assert "last administrator's key" in refused.err
    moot("key", "create", "--name", "second", "--admin")
    assert moot("key", "revoke", "second").code == 0
    assert moot("key", "revoke", "local", "--yes").code == 0
    assert server.stop() == 0


def test_revoking_needs_one_key_that_is_meant(moot: Cli) -> None:
    assert moot("key", "revoke", "nobody").code == 5
    for _ in range(2):
        moot("key", "create", "--name", "twin")
    assert moot("key", "revoke", "twin").code == 2


def test_a_wrong_key_is_refused_with_where_keys_come_from(moot: Cli) -> None:
    done = moot("run", "list", "--token", "hk_wrong")
    assert done.code == 1
    assert "moot.db.key" in done.err
