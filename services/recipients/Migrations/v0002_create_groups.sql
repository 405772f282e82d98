CREATE TABLE groups (
  group_id uuid PRIMARY KEY,
  account_id uuid NOT NULL,
  name text NOT NULL,
  name_key text NOT NULL,
  revision bigint NOT NULL DEFAULT 1,
  create_time timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT groups_name UNIQUE (account_id, name_key),
  CONSTRAINT groups_owner UNIQUE (group_id, account_id)
);

-- A member belongs to the same account as its group.
CREATE TABLE members (
  group_id uuid NOT NULL,
  recipient_id uuid NOT NULL,
  account_id uuid NOT NULL,
  PRIMARY KEY (group_id, recipient_id),
  FOREIGN KEY (group_id, account_id) REFERENCES groups (group_id, account_id) ON DELETE CASCADE,
  FOREIGN KEY (recipient_id, account_id) REFERENCES recipients (recipient_id, account_id) ON DELETE CASCADE
);
CREATE INDEX members_by_recipient ON members (recipient_id);
