"""The boss at work: rounds, planner, controller, executors, and bosses that work for other bosses."""
