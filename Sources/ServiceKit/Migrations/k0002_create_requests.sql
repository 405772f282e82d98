-- Answers to effectful calls, kept so that a repeat gets the same one. Answers are sealed; digests are keyed.
CREATE TABLE requests (
  caller text NOT NULL,
  method text NOT NULL,
  request_id uuid NOT NULL,
  digest bytea NOT NULL,
  response bytea,
  create_time timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (caller, method, request_id)
);
CREATE INDEX requests_by_age ON requests (create_time);

-- The data keys that seal this service's content, one per owner, wrapped by a key-encryption key. The nil UUID owns
-- what belongs to the service itself.
CREATE TABLE data_keys (
  owner_id uuid PRIMARY KEY,
  wrapped bytea NOT NULL,
  create_time timestamptz NOT NULL DEFAULT now()
);

-- Notifications on their way to the notifications service, sealed because they hold links and codes.
CREATE TABLE send_queue (
  send_id uuid PRIMARY KEY,
  sealed bytea NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  next_attempt_time timestamptz NOT NULL DEFAULT now(),
  refused text,
  create_time timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX send_queue_due ON send_queue (next_attempt_time) WHERE refused IS NULL;
