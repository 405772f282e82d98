-- Each channel is worked off by itself: a heap of waiting notices must not be passed over to find a mail.
DROP INDEX sends_due;
CREATE INDEX sends_due ON sends (channel, next_attempt_time) WHERE status = 'pending';

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'afterthoughts_notifications') THEN
    REVOKE UPDATE, DELETE, TRUNCATE ON notification_log FROM afterthoughts_notifications;
  END IF;
END
$$;
