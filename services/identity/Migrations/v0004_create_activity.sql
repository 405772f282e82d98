-- What happened to each account: names and times only.
CREATE TABLE activity (
  sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES accounts,
  event text NOT NULL CHECK (event ~ '^[a-z_]{1,63}$'),
  event_time timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX activity_by_account ON activity (account_id, sequence);
CREATE TRIGGER activity_grows BEFORE UPDATE OR DELETE ON activity
  FOR EACH ROW EXECUTE FUNCTION refuse_change();

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'afterthoughts_identity') THEN
    REVOKE UPDATE, DELETE ON activity FROM afterthoughts_identity;
  END IF;
END
$$;
