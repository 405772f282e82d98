-- What an account is told inside the app. The sentence is made when it is read; names are sealed.
CREATE TABLE notices (
  notification_id uuid PRIMARY KEY,
  account_id uuid NOT NULL,
  type text NOT NULL CHECK (type IN ('message_received', 'administrator_role', 'attempt_opened')),
  sealed_description bytea NOT NULL,
  create_time timestamptz NOT NULL DEFAULT now(),
  read_time timestamptz
);
CREATE INDEX notices_by_account ON notices (account_id, create_time DESC, notification_id DESC);
