-- One row for each person whose passing is confirmed: nothing below can exist without it.
CREATE TABLE accounts (
  account_id uuid PRIMARY KEY,
  confirmation_id uuid NOT NULL UNIQUE,
  administrator_id uuid NOT NULL,
  statement bytea NOT NULL,
  signature bytea NOT NULL,
  key_id text NOT NULL,
  confirm_time timestamptz NOT NULL,
  sender_name text,
  time_zone text,
  -- When every ready message was taken up; nothing is handed over before.
  schedule_time timestamptz
);
CREATE INDEX accounts_unscheduled ON accounts (confirm_time) WHERE schedule_time IS NULL;

-- The recipients as they stood at the confirmation.
CREATE TABLE recipients (
  account_id uuid NOT NULL REFERENCES accounts,
  recipient_id uuid NOT NULL,
  name text NOT NULL,
  email text NOT NULL,
  declined boolean NOT NULL,
  -- Whether a mail has told this person already.
  greeted boolean NOT NULL DEFAULT false,
  PRIMARY KEY (account_id, recipient_id)
);
