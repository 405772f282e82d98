-- Every opening of a message for delivery, written in the statement that reads it. Rows are never changed or removed.
CREATE TABLE release_reads (
  sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  message_id uuid NOT NULL,
  owner_id uuid NOT NULL,
  -- The confirmation whose statement was shown.
  confirmation_id uuid NOT NULL,
  caller text NOT NULL,
  read_time timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are never changed or removed', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END
$$;
CREATE TRIGGER release_reads_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON release_reads
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'afterthoughts_vault') THEN
    REVOKE UPDATE, DELETE, TRUNCATE ON release_reads FROM afterthoughts_vault;
  END IF;
END
$$;
