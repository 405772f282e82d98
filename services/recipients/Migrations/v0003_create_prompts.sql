-- Links of acceptance prompts; only their hashes.
CREATE TABLE prompts (
  token_hash bytea PRIMARY KEY,
  recipient_id uuid NOT NULL REFERENCES recipients ON DELETE CASCADE,
  create_time timestamptz NOT NULL DEFAULT now(),
  expire_time timestamptz NOT NULL,
  void_time timestamptz
);
CREATE INDEX prompts_by_recipient ON prompts (recipient_id);

-- When an account last had an address asked. Outlives the recipient, so that neither removing and adding them again nor
-- changing the address back and forth asks anyone more often. The address is a keyed digest.
CREATE TABLE prompted_addresses (
  account_id uuid NOT NULL,
  address bytea NOT NULL,
  prompt_time timestamptz NOT NULL,
  PRIMARY KEY (account_id, address)
);
