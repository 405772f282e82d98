"""What stands in a stack's database, for tests of what changes it and what does not."""

import contextlib
import time

from .cluster import Cluster
from .layout import DATABASE_SERVICES
from .stack import Stack

#: One row for each table: its name and a digest of all it holds.
DIGESTS = """
SELECT table_schema || '.' || table_name,
       md5(query_to_xml(format('SELECT t::text FROM %I.%I AS t ORDER BY 1', table_schema, table_name),
                        true, false, '')::text)
FROM information_schema.tables WHERE table_schema = ANY ('{{{schemas}}}') AND table_type = 'BASE TABLE' ORDER BY 1;
"""


class Records:
    def __init__(self, stack: Stack):
        self.stack = stack
        self.cluster = Cluster()

    def query(self, statement: str) -> list:
        """The rows, each a list of texts."""
        text = self.cluster.psql(self.stack.layout.database, statement)
        return [line.split("|") for line in text.splitlines() if line]

    def digests(self) -> dict:
        return dict(self.query(DIGESTS.format(schemas=",".join(DATABASE_SERVICES))))

    def unfinished(self) -> list:
        """What the services still have to do by themselves, as lines for a person."""
        parts = [f"SELECT '{name}: queued mails', count(*) FROM {name}.send_queue" for name in DATABASE_SERVICES]
        for consumer in DATABASE_SERVICES:
            # An event has no position before somebody reads it.
            parts += [f"SELECT '{consumer}: events of {publisher}', (SELECT count(*) FROM {publisher}.outbox AS event "
                      f"WHERE event.position IS NULL OR event.position > cursor.position) "
                      f"FROM {consumer}.event_cursors AS cursor WHERE publisher = '{publisher}'"
                      for publisher in DATABASE_SERVICES]
        parts += [
            "SELECT 'notifications: sends', count(*) FROM notifications.sends WHERE status = 'pending'",
            "SELECT 'delivery: accounts', count(*) FROM delivery.accounts WHERE schedule_time IS NULL",
            "SELECT 'delivery: due', count(*) FROM delivery.deliveries "
            "WHERE status = 'pending' AND due_time <= now()"]
        return [": ".join(row) for row in self.query(" UNION ALL ".join(parts)) if row[1] != "0"]

    def settle(self, seconds: float = 60) -> None:
        """Returns when the services have nothing left to do."""
        until = time.monotonic() + seconds
        while unfinished := self.unfinished():
            assert time.monotonic() < until, f"after {seconds:g} s there is still: {unfinished}"
            time.sleep(0.05)

    @contextlib.contextmanager
    def unchanged(self):
        """Fails when the block has changed a row anywhere, or sent a mail."""
        self.settle()
        before, mails = self.digests(), len(self.stack.mail.all())
        yield
        self.settle()
        after = self.digests()
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        assert changed == [], f"these tables have changed: {changed}"
        assert len(self.stack.mail.all()) == mails, "a mail was sent"
