CREATE TABLE recipients (
  recipient_id uuid PRIMARY KEY,
  account_id uuid NOT NULL,
  name text NOT NULL,
  email text NOT NULL,
  email_key text NOT NULL,
  phone text NOT NULL,
  relationship text NOT NULL CHECK (relationship IN ('family', 'friend', 'colleague', 'other')),
  acceptance text NOT NULL DEFAULT 'pending' CHECK (acceptance IN ('pending', 'accepted', 'declined')),
  prompt_time timestamptz,
  revision bigint NOT NULL DEFAULT 1,
  create_time timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT recipients_email UNIQUE (account_id, email_key),
  CONSTRAINT recipients_owner UNIQUE (recipient_id, account_id)
);

-- Accounts whose passing is confirmed: their recipients and groups do not change any more.
CREATE TABLE frozen_accounts (
  account_id uuid PRIMARY KEY,
  freeze_time timestamptz NOT NULL DEFAULT now()
);
