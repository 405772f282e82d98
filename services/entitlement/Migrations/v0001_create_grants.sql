-- Who may prepare recurring messages: one row for each account that has ever purchased, none for the others. Nothing
-- writes here yet.
CREATE TABLE grants (
  account_id uuid PRIMARY KEY,
  -- The numbers of EntitlementState: 2 purchased, 3 refunded.
  state smallint NOT NULL CHECK (state IN (2, 3)),
  grant_time timestamptz NOT NULL
);
