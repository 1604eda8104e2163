"""From what was said in a session to what might be remembered. Pure: no query; a distiller may ask a model."""
