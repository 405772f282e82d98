-- Who may confirm a passing. A designation that ended is kept.
CREATE TABLE designations (
  designation_id uuid PRIMARY KEY,
  account_id uuid NOT NULL,
  role text NOT NULL CHECK (role IN ('administrator', 'backup')),
  recipient_id uuid,
  name text NOT NULL,
  email text NOT NULL,
  email_key text NOT NULL,
  phone text NOT NULL,
  create_time timestamptz NOT NULL DEFAULT now(),
  remove_time timestamptz
);
-- Never more than one administrator and one backup.
CREATE UNIQUE INDEX designations_one_per_role ON designations (account_id, role) WHERE remove_time IS NULL;
CREATE INDEX designations_by_email ON designations (email_key) WHERE remove_time IS NULL;
