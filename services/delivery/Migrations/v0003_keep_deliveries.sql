-- Deliveries are kept for good: emptying the table is refused as well, and the service's role may not even try.
CREATE TRIGGER keep_all_deliveries BEFORE TRUNCATE ON deliveries
  FOR EACH STATEMENT EXECUTE FUNCTION keep_deliveries();

CREATE OR REPLACE FUNCTION keep_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  steps constant text[] := ARRAY['pending', 'sent', 'viewed'];
BEGIN
  IF TG_OP IN ('DELETE', 'TRUNCATE') THEN
    RAISE EXCEPTION 'deliveries are kept' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.status <> OLD.status
    AND coalesce(array_position(steps, NEW.status), 0) <= coalesce(array_position(steps, OLD.status), 9) THEN
    RAISE EXCEPTION 'a delivery does not go from % to %', OLD.status, NEW.status
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END
$$;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'afterthoughts_delivery') THEN
    REVOKE DELETE, TRUNCATE ON deliveries FROM afterthoughts_delivery;
  END IF;
END
$$;
