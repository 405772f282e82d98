-- One row for each author who has ever saved something. Every write locks it first, so that the writes of one account
-- come one after the other, and none comes after the freeze.
CREATE TABLE accounts (
  account_id uuid PRIMARY KEY,
  -- Set for good when a confirmed passing is made known; from then on nothing of the account changes.
  freeze_time timestamptz
);
