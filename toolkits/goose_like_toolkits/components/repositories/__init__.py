"""Where components lie: the local repository, remote ones, and the copies in a working directory."""
