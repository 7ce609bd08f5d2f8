"""Network access of commands: the proxy and the hosts that it allows."""
