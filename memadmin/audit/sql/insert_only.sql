-- Numbers of events that nobody can choose.

ALTER TABLE audit_event ALTER COLUMN number SET GENERATED ALWAYS;
