CREATE TABLE accounts (
  account_id uuid PRIMARY KEY,
  -- As mailed; `email_key` is its case-folded form and makes one address one account.
  email text NOT NULL CHECK (octet_length(email) <= 254),
  email_key text NOT NULL CONSTRAINT accounts_email_taken UNIQUE,
  email_verified_time timestamptz,
  display_name text NOT NULL CHECK (display_name <> ''),
  time_zone text NOT NULL CHECK (time_zone <> ''),
  password_hash text NOT NULL CHECK (password_hash LIKE '$argon2id$%'),
  security_question text NOT NULL CHECK (security_question <> ''),
  security_answer_hash text NOT NULL CHECK (security_answer_hash LIKE '$argon2id$%'),
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended', 'deactivated')),
  passing_confirmed_time timestamptz,
  create_time timestamptz NOT NULL DEFAULT now()
);
CREATE TRIGGER accounts_keep_id BEFORE UPDATE ON accounts
  FOR EACH ROW WHEN (OLD.account_id <> NEW.account_id OR OLD.create_time <> NEW.create_time)
  EXECUTE FUNCTION refuse_change();

-- Which text an account accepted, and when.
CREATE TABLE terms_acceptances (
  account_id uuid NOT NULL REFERENCES accounts,
  kind text NOT NULL,
  version integer NOT NULL,
  accept_time timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, kind, version),
  FOREIGN KEY (kind, version) REFERENCES legal_versions
);
CREATE TRIGGER terms_acceptances_grow BEFORE UPDATE OR DELETE ON terms_acceptances
  FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Mailed links that prove an address. Only the hash of a link's token is here.
CREATE TABLE email_verifications (
  token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
  account_id uuid NOT NULL REFERENCES accounts,
  -- The address that the link was mailed to.
  email_key text NOT NULL,
  create_time timestamptz NOT NULL DEFAULT now(),
  expire_time timestamptz NOT NULL,
  spend_time timestamptz,
  void_time timestamptz
);
CREATE INDEX email_verifications_by_account ON email_verifications (account_id, create_time);
-- A newer link voids the older one.
CREATE UNIQUE INDEX email_verifications_live ON email_verifications (account_id)
  WHERE spend_time IS NULL AND void_time IS NULL;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'afterthoughts_identity') THEN
    REVOKE DELETE ON accounts FROM afterthoughts_identity;
    REVOKE UPDATE, DELETE ON terms_acceptances FROM afterthoughts_identity;
  END IF;
END
$$;
