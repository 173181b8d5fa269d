"""Where jobs and schedulers are declared: what is refused, and in which words."""
