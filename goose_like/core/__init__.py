"""Values and contracts: messages, events, history, notifiers, tools, errors and entry points."""
