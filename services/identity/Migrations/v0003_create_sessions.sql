CREATE TABLE sessions (
  session_id uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES accounts,
  create_time timestamptz NOT NULL DEFAULT now(),
  last_use_time timestamptz NOT NULL DEFAULT now(),
  end_time timestamptz,
  end_reason text CHECK (end_reason IN ('logged_out', 'token_reused', 'account_closed')),
  CHECK ((end_time IS NULL) = (end_reason IS NULL))
);
CREATE INDEX sessions_open ON sessions (account_id) WHERE end_time IS NULL;

-- A session's refresh tokens, by hash. Spent ones stay, so that a second use is seen.
CREATE TABLE refresh_tokens (
  token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
  session_id uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
  create_time timestamptz NOT NULL DEFAULT now(),
  spend_time timestamptz
);
CREATE INDEX refresh_tokens_by_session ON refresh_tokens (session_id);
CREATE UNIQUE INDEX refresh_tokens_live ON refresh_tokens (session_id) WHERE spend_time IS NULL;

-- Failed sign-ins by a keyed digest of the address, whether an account holds it or not.
CREATE TABLE sign_in_throttles (
  email_digest bytea PRIMARY KEY CHECK (octet_length(email_digest) = 32),
  failure_times timestamptz[] NOT NULL DEFAULT '{}',
  lock_count integer NOT NULL DEFAULT 0 CHECK (lock_count >= 0),
  locked_until timestamptz,
  change_time timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sign_in_throttles_by_age ON sign_in_throttles (change_time);
