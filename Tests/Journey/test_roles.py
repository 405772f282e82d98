"""Each service's database role reaches its own schema and nothing else."""

import itertools

import pytest
from rig.cluster import Cluster
from rig.console import Fault
from rig.layout import DATABASE_SERVICES, Layout

LAYOUT = Layout.named("roles", 0)


@pytest.fixture(scope="module")
def database(cluster: Cluster):
    """A database with one table in each schema, made by the schema's owner as a migration would make it."""
    cluster.drop_database(LAYOUT)
    cluster.ensure_database(LAYOUT)
    for name in DATABASE_SERVICES:
        cluster.psql(LAYOUT.database, "CREATE TABLE item (id bigint GENERATED ALWAYS AS IDENTITY, body text);"
                     "CREATE TYPE state AS ENUM ('open'); CREATE TABLE stated (state state);"
                     "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS 'SELECT 2 * n';",
                     role=f"afterthoughts_{name}_owner")
    yield LAYOUT.database
    cluster.drop_database(LAYOUT)


def refused(cluster: Cluster, database: str, role: str, statement: str) -> bool:
    with pytest.raises(Fault) as fault:
        cluster.psql(database, statement, role=role)
    return "permission denied" in str(fault.value) or "must be owner" in str(fault.value)


@pytest.mark.parametrize("name", DATABASE_SERVICES)
def test_role_reads_and_writes_its_own_schema(cluster, database, name):
    answer = cluster.psql(
        database, "INSERT INTO item (body) VALUES ('a'); UPDATE item SET body = 'b'; INSERT INTO stated VALUES ('open');"
        "SELECT body, twice(21), current_schema() FROM item; DELETE FROM item;", role=f"afterthoughts_{name}")
    assert answer.strip() == f"b|42|{name}"


@pytest.mark.parametrize("name,other", list(itertools.permutations(DATABASE_SERVICES, 2)))
def test_role_is_refused_in_every_other_schema(cluster, database, name, other):
    role = f"afterthoughts_{name}"
    for statement in (f"SELECT * FROM {other}.item;", f"INSERT INTO {other}.item (body) VALUES ('x');",
                      f"SELECT {other}.twice(1);", f"SET ROLE afterthoughts_{other};"):
        assert refused(cluster, database, role, statement), statement


@pytest.mark.parametrize("name", DATABASE_SERVICES)
def test_role_can_change_no_structure(cluster, database, name):
    role = f"afterthoughts_{name}"
    for statement in ("CREATE TABLE mine (a int);", "CREATE TABLE public.mine (a int);", "CREATE SCHEMA mine;",
                      "CREATE TEMPORARY TABLE mine (a int);", "ALTER TABLE item ADD COLUMN c int;", "DROP TABLE item;",
                      "TRUNCATE item;"):
        assert refused(cluster, database, role, statement), statement


def test_role_can_enter_no_other_database(cluster, database):
    for other in ("postgres", "template1"):
        assert refused(cluster, other, "afterthoughts_vault", "SELECT 1;")


def test_dump_shows_what_stands_in_bytes(cluster, database):
    cluster.psql(database, "CREATE TABLE vault.raw AS SELECT convert_to('in clear', 'UTF8') AS body;")
    assert "in clear" in cluster.dump(database)
