-- Prepared messages. The title stays in clear because it is searched; the body is sealed with the owner's data key.
CREATE TABLE messages (
  message_id uuid PRIMARY KEY,
  owner_id uuid NOT NULL REFERENCES accounts,
  -- The numbers of MessageType: 1 letter, 2 note.
  type smallint NOT NULL CHECK (type IN (1, 2)),
  -- The numbers of MessageStatus: 1 draft, 2 ready.
  status smallint NOT NULL CHECK (status IN (1, 2)),
  title text NOT NULL CHECK (octet_length(title) <= 6400),
  -- Sealed for this row, this owner and this status: a draft does not open as a ready message.
  body bytea NOT NULL,
  recipient_ids uuid[] NOT NULL CHECK (cardinality(recipient_ids) <= 1000),
  group_ids uuid[] NOT NULL CHECK (cardinality(group_ids) <= 200),
  -- Null while none is set; 1 immediate, 2 on a date, 3 some time after the confirmation.
  condition smallint CHECK (condition IN (1, 2, 3)),
  due_date date,
  -- Minutes after midnight in the author's zone; null means 09:00.
  due_minute integer CHECK (due_minute BETWEEN 0 AND 1439),
  delay_count integer CHECK (delay_count >= 1),
  -- The numbers of DelayUnit: 1 days, 2 months, 3 years.
  delay_unit integer CHECK (delay_unit IN (1, 2, 3)),
  revision bigint NOT NULL,
  create_time timestamptz NOT NULL DEFAULT now(),
  update_time timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT messages_condition_whole CHECK (
    (due_date IS NOT NULL) = (condition IS NOT DISTINCT FROM 2)
    AND (due_minute IS NULL OR due_date IS NOT NULL)
    AND (delay_count IS NOT NULL) = (condition IS NOT DISTINCT FROM 3)
    AND (delay_unit IS NOT NULL) = (condition IS NOT DISTINCT FROM 3)),
  -- Sealing adds 29 bytes, so a longer body is one that holds something.
  CONSTRAINT messages_ready_whole CHECK (
    status <> 2
    OR title <> '' AND octet_length(body) > 29 AND condition IS NOT NULL
      AND cardinality(recipient_ids) + cardinality(group_ids) > 0)
);
CREATE INDEX messages_by_age ON messages (owner_id, create_time DESC, message_id DESC);
