-- What this service publishes, in the transaction of each change, and how far it has read what others publish.
CREATE TABLE outbox (
  sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  position bigint UNIQUE,
  event_id uuid NOT NULL UNIQUE,
  type text NOT NULL,
  subject_id uuid NOT NULL,
  create_time timestamptz NOT NULL DEFAULT now(),
  payload bytea NOT NULL,
  traceparent text NOT NULL
);
CREATE INDEX outbox_unplaced ON outbox (sequence) WHERE position IS NULL;

-- One row: the last position given. Its lock makes positions appear in order.
CREATE TABLE outbox_head (
  single boolean PRIMARY KEY DEFAULT true CHECK (single),
  position bigint NOT NULL
);
INSERT INTO outbox_head (position) VALUES (0);

-- Gives every visible event without a position the next ones, oldest first. Returns how many.
CREATE FUNCTION place_events() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  head bigint;
  placed bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM outbox WHERE position IS NULL) THEN
    RETURN 0;
  END IF;
  SELECT position INTO head FROM outbox_head FOR UPDATE;
  WITH unplaced AS (
    SELECT sequence, row_number() OVER (ORDER BY sequence) AS place FROM outbox WHERE position IS NULL
  )
  UPDATE outbox SET position = head + unplaced.place FROM unplaced WHERE outbox.sequence = unplaced.sequence;
  GET DIAGNOSTICS placed = ROW_COUNT;
  UPDATE outbox_head SET position = head + placed;
  RETURN placed;
END
$$;

CREATE TABLE event_cursors (
  publisher text PRIMARY KEY,
  position bigint NOT NULL CHECK (position >= 0),
  move_time timestamptz NOT NULL DEFAULT now()
);
