-- Raises for every change: for tables, or rows, that only grow.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TABLE legal_documents (
  kind text PRIMARY KEY CHECK (kind IN ('terms', 'privacy_policy'))
);
INSERT INTO legal_documents (kind) VALUES ('terms'), ('privacy_policy');

-- A version without a publish time is a draft. A published one stays as people accepted it.
CREATE TABLE legal_versions (
  kind text NOT NULL REFERENCES legal_documents,
  version integer NOT NULL CHECK (version > 0),
  text text NOT NULL CHECK (text <> ''),
  publish_time timestamptz,
  PRIMARY KEY (kind, version)
);
CREATE TRIGGER legal_versions_published BEFORE UPDATE OR DELETE ON legal_versions
  FOR EACH ROW WHEN (OLD.publish_time IS NOT NULL) EXECUTE FUNCTION refuse_change();
