-- The record. One for each account, never changed, never deleted, by anyone.
CREATE TABLE confirmations (
  confirmation_id uuid PRIMARY KEY,
  account_id uuid NOT NULL,
  administrator_id uuid NOT NULL,
  designation_id uuid NOT NULL REFERENCES designations,
  attempt_id uuid NOT NULL REFERENCES attempts,
  confirm_time timestamptz NOT NULL,
  statement bytea NOT NULL,
  signature bytea NOT NULL,
  key_id text NOT NULL,
  CONSTRAINT confirmations_once UNIQUE (account_id)
);

-- What happened around it: only ever added to, each entry bound to the one before.
CREATE TABLE audit (
  entry bigint PRIMARY KEY,
  account_id uuid NOT NULL,
  actor_id uuid NOT NULL,
  event text NOT NULL,
  object_id uuid NOT NULL,
  audit_time timestamptz NOT NULL,
  previous bytea NOT NULL,
  hash bytea NOT NULL
);
CREATE TABLE audit_head (
  single boolean PRIMARY KEY DEFAULT true CHECK (single),
  entry bigint NOT NULL,
  hash bytea NOT NULL
);
INSERT INTO audit_head (entry, hash) VALUES (0, '');

-- Runs as the schema's owner: the service itself cannot move the head.
CREATE FUNCTION chain_audit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  head audit_head;
BEGIN
  SELECT * INTO head FROM audit_head FOR UPDATE;
  NEW.entry := head.entry + 1;
  NEW.audit_time := clock_timestamp();
  NEW.previous := head.hash;
  NEW.hash := sha256(head.hash || convert_to(
    concat_ws('|', NEW.entry, NEW.account_id, NEW.actor_id, NEW.event, NEW.object_id,
      extract(epoch FROM NEW.audit_time)), 'UTF8'));
  UPDATE audit_head SET entry = NEW.entry, hash = NEW.hash;
  RETURN NEW;
END
$$;
CREATE TRIGGER chain_audit BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION chain_audit();

CREATE FUNCTION keep_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the record is only ever added to';
END
$$;
CREATE TRIGGER keep_record BEFORE UPDATE OR DELETE OR TRUNCATE ON confirmations
  FOR EACH STATEMENT EXECUTE FUNCTION keep_record();
CREATE TRIGGER keep_record BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION keep_record();
-- Also in a session that replays changes, where other triggers sleep.
ALTER TABLE confirmations ENABLE ALWAYS TRIGGER keep_record;
ALTER TABLE audit ENABLE ALWAYS TRIGGER keep_record;
ALTER TABLE audit ENABLE ALWAYS TRIGGER chain_audit;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'afterthoughts_confirmation') THEN
    REVOKE UPDATE, DELETE, TRUNCATE ON confirmations, audit FROM afterthoughts_confirmation;
    REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON audit_head FROM afterthoughts_confirmation;
  END IF;
END
$$;
