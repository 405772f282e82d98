-- The database, one schema for each service, and who may do what in it. Run by a superuser through psql, as often as
-- one likes: it makes what is missing and sets passwords and rights anew.
--
-- Variables: database, and for every service <service>_password and <service>_owner_password, for example
--   \set database 'afterthoughts'
--   \set vault_password '...'
--   \set vault_owner_password '...'
-- set them in a file that includes this one (\ir roles.sql) rather than on the command line, which others can read.
--
-- For the service vault:
--   afterthoughts_vault_owner  owns the schema vault; `vault migrate` connects as it.
--   afterthoughts_vault        reads and writes rows of the schema vault and nothing else; `vault serve` connects as it.
-- A migration narrows this further where a table is append-only (REVOKE UPDATE, DELETE ... FROM afterthoughts_vault).
-- Nothing is granted to PUBLIC. Other databases of the cluster are the operator's to close.

\set ON_ERROR_STOP on
SET password_encryption = 'scram-sha-256';
SET client_min_messages = 'warning';

CREATE TEMPORARY TABLE login (role text PRIMARY KEY, password text NOT NULL);
INSERT INTO login VALUES
  ('afterthoughts_identity', :'identity_password'),
  ('afterthoughts_identity_owner', :'identity_owner_password'),
  ('afterthoughts_vault', :'vault_password'),
  ('afterthoughts_vault_owner', :'vault_owner_password'),
  ('afterthoughts_recipients', :'recipients_password'),
  ('afterthoughts_recipients_owner', :'recipients_owner_password'),
  ('afterthoughts_confirmation', :'confirmation_password'),
  ('afterthoughts_confirmation_owner', :'confirmation_owner_password'),
  ('afterthoughts_delivery', :'delivery_password'),
  ('afterthoughts_delivery_owner', :'delivery_owner_password'),
  ('afterthoughts_entitlement', :'entitlement_password'),
  ('afterthoughts_entitlement_owner', :'entitlement_owner_password'),
  ('afterthoughts_notifications', :'notifications_password'),
  ('afterthoughts_notifications_owner', :'notifications_owner_password');

SELECT format('CREATE ROLE %I', role) FROM login
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) ORDER BY role \gexec

SELECT format(
  'ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOREPLICATION NOBYPASSRLS PASSWORD %L',
  role, password)
FROM login ORDER BY role \gexec

SELECT format('CREATE DATABASE %I', :'database')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database') \gexec

\connect :"database"
SET client_min_messages = 'warning';

CREATE TEMPORARY TABLE service AS
SELECT name, 'afterthoughts_' || name AS serve, 'afterthoughts_' || name || '_owner' AS owner
FROM unnest(ARRAY['identity', 'vault', 'recipients', 'confirmation', 'delivery', 'entitlement', 'notifications']) name;

BEGIN;

SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', :'database') \gexec
REVOKE ALL ON SCHEMA public FROM PUBLIC;

SELECT format('GRANT CONNECT ON DATABASE %I TO %I, %I', :'database', serve, owner) FROM service \gexec
SELECT format('CREATE SCHEMA IF NOT EXISTS %I AUTHORIZATION %I', name, owner) FROM service \gexec
SELECT format('ALTER ROLE %I SET search_path = %I', serve, name) FROM service \gexec
SELECT format('ALTER ROLE %I SET search_path = %I', owner, name) FROM service \gexec
SELECT format('REVOKE ALL ON SCHEMA %I FROM PUBLIC', name) FROM service \gexec
SELECT format('GRANT USAGE ON SCHEMA %I TO %I', name, serve) FROM service \gexec

-- What an owner creates from now on is its service's to use, and nobody else's.
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I REVOKE ALL ON FUNCTIONS FROM PUBLIC', owner) FROM service \gexec
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I REVOKE ALL ON TYPES FROM PUBLIC', owner) FROM service \gexec
SELECT format(
  'ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %I',
  owner, name, serve)
FROM service \gexec
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT USAGE, SELECT ON SEQUENCES TO %I',
  owner, name, serve)
FROM service \gexec
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT EXECUTE ON FUNCTIONS TO %I', owner, name, serve)
FROM service \gexec
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT USAGE ON TYPES TO %I', owner, name, serve)
FROM service \gexec

COMMIT;
