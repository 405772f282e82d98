-- Links of acceptance prompts; only their hashes.
CREATE TABLE prompts (
  token_hash bytea PRIMARY KEY,
  recipient_id uuid NOT NULL REFERENCES recipients ON DELETE CASCADE,
  create_time timestamptz NOT NULL DEFAULT now(),
  expire_time timestamptz NOT NULL,
  void_time timestamptz
);
CREATE INDEX prompts_by_recipient ON prompts (recipient_id);
