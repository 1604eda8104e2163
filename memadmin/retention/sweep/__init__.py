"""The sweep: the nightly run that carries out the policies in force."""
