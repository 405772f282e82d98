-- Attempts to confirm a passing, and their challenges. Codes are kept as keyed digests.
CREATE TABLE attempts (
  attempt_id uuid PRIMARY KEY,
  designation_id uuid NOT NULL REFERENCES designations,
  account_id uuid NOT NULL,
  administrator_id uuid NOT NULL,
  open_time timestamptz NOT NULL DEFAULT now(),
  code_digest bytea NOT NULL,
  challenge_expire_time timestamptz NOT NULL,
  tries integer NOT NULL DEFAULT 0 CHECK (tries BETWEEN 0 AND 5),
  pass_time timestamptz,
  confirm_expire_time timestamptz,
  close_time timestamptz,
  close_reason text CHECK (close_reason IN ('cancelled', 'superseded', 'designation_removed', 'confirmed'))
);
CREATE INDEX attempts_by_account ON attempts (account_id, open_time);
