-- Whether a role is that of agents, for the log. By name: a member of such a role is not yet an agent.

CREATE FUNCTION memadmin_is_agents_role(role name) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
SELECT EXISTS (SELECT FROM sessions_app_sessionstore WHERE role::text = ANY (agent_roles))
$$;
