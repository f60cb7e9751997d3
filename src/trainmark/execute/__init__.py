"""HOW a run happens: plan, rounds, one fresh process a run, a record of each."""
