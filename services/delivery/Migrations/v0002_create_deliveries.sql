-- The schedule: one row for each message, recipient and occurrence.
CREATE TABLE deliveries (
  delivery_id uuid PRIMARY KEY,
  account_id uuid NOT NULL,
  message_id uuid NOT NULL,
  recipient_id uuid NOT NULL,
  occurrence integer NOT NULL DEFAULT 0 CHECK (occurrence >= 0),
  message_type text NOT NULL CHECK (message_type IN ('letter', 'note')),
  due_time timestamptz NOT NULL,
  late boolean NOT NULL,
  status text NOT NULL CHECK (status IN ('pending', 'sent', 'viewed', 'suppressed')),
  hand_over_time timestamptz,
  send_time timestamptz,
  view_time timestamptz,
  acknowledge_time timestamptz,
  fail_time timestamptz,
  FOREIGN KEY (account_id, recipient_id) REFERENCES recipients,
  CONSTRAINT deliveries_once UNIQUE (message_id, recipient_id, occurrence)
);
CREATE INDEX deliveries_due ON deliveries (due_time) WHERE status = 'pending' AND hand_over_time IS NULL;
CREATE INDEX deliveries_by_account ON deliveries (account_id, due_time, delivery_id);

-- The links that were mailed; only their hashes.
CREATE TABLE links (
  token_hash bytea PRIMARY KEY,
  delivery_id uuid NOT NULL REFERENCES deliveries,
  create_time timestamptz NOT NULL DEFAULT now(),
  expire_time timestamptz NOT NULL,
  revoke_time timestamptz
);
CREATE INDEX links_by_delivery ON links (delivery_id);

-- A delivery is never deleted and its status never moves back.
CREATE FUNCTION keep_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  steps constant text[] := ARRAY['pending', 'sent', 'viewed'];
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'deliveries are kept';
  END IF;
  IF NEW.status <> OLD.status
    AND coalesce(array_position(steps, NEW.status), 0) <= coalesce(array_position(steps, OLD.status), 9) THEN
    RAISE EXCEPTION 'a delivery does not go from % to %', OLD.status, NEW.status;
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER keep_deliveries BEFORE UPDATE OR DELETE ON deliveries
  FOR EACH ROW EXECUTE FUNCTION keep_deliveries();

-- The first instant at which a clock in `zone` shows `local` or, where that time does not exist, the next valid one.
-- Of a time that comes twice it is the first.
CREATE FUNCTION local_instant(local timestamp, zone text) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT min(candidate)
  FROM generate_series(
    (local AT TIME ZONE zone) - interval '3 hours', (local AT TIME ZONE zone) + interval '3 hours',
    interval '1 minute') AS candidate
  WHERE candidate AT TIME ZONE zone >= local
$$;
