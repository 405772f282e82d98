-- The secure folder: title and text are sealed with the owner's data key.
CREATE TABLE folder_items (
  item_id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES accounts,
  -- The numbers of FolderSection.
  section smallint NOT NULL CHECK (section BETWEEN 1 AND 4),
  title bytea NOT NULL,
  text bytea NOT NULL,
  revision bigint NOT NULL,
  create_time timestamptz NOT NULL DEFAULT now(),
  update_time timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX folder_items_by_owner ON folder_items (owner_id, section);
