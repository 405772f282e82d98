-- What the other services asked for. The request is sealed, and wiped once every channel is done with it.
CREATE TABLE notifications (
  notification_id uuid PRIMARY KEY,
  kind text NOT NULL,
  digest bytea NOT NULL,
  sealed bytea,
  create_time timestamptz NOT NULL DEFAULT now()
);

-- One send for each notification and channel.
CREATE TABLE sends (
  notification_id uuid NOT NULL REFERENCES notifications,
  channel text NOT NULL CHECK (channel IN ('email', 'in_app')),
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sent', 'failed', 'skipped')),
  attempts integer NOT NULL DEFAULT 0,
  next_attempt_time timestamptz NOT NULL DEFAULT now(),
  -- While it lies in the future, one instance is at it.
  lease_time timestamptz NOT NULL DEFAULT '-infinity',
  PRIMARY KEY (notification_id, channel)
);
CREATE INDEX sends_due ON sends (next_attempt_time) WHERE status = 'pending';

-- Every event of a notification's life. Only ever added to.
CREATE TABLE notification_log (
  entry bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  notification_id uuid NOT NULL,
  kind text NOT NULL,
  log_type text NOT NULL CHECK (log_type IN ('acceptance_prompt', 'delivery', 'system')),
  channel text NOT NULL,
  event text NOT NULL CHECK (event IN ('queued', 'sent', 'retried', 'failed', 'skipped')),
  -- The provider's code or our reason; never its text, which may hold an address.
  reason text NOT NULL DEFAULT '',
  log_time timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX notification_log_by_notification ON notification_log (notification_id);

CREATE FUNCTION keep_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the notification log is only ever added to';
END
$$;
CREATE TRIGGER keep_log BEFORE UPDATE OR DELETE OR TRUNCATE ON notification_log
  FOR EACH STATEMENT EXECUTE FUNCTION keep_log();
