-- A trigger of all tables that only a proven actor changes has taken its place (audit/sql/proofs.sql).
DROP FUNCTION IF EXISTS memadmin_account_is_proven() CASCADE;
