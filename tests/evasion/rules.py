"""The catch rate of the permission rules: lines that hide a command which a rule denies or asks about.

The rules are advisory, so a miss is no failure of the suite: whatever runs, the sandbox confines it.
"""

from goose_like.config.profile import PermissionLists
from goose_like.workspace.permissions.rules import PermissionRules, build_rules

LISTS = PermissionLists(
    deny=("rm -rf", "npm publish"), ask=("git push", "curl", "docker run"), allow=("ls", "git status")
)

COMMANDS = (
    *("git push --force", "git push origin main", "git -C . push", "rm -rf build", "rm -fr build", "rm -r -f build"),
    *("curl http://x.invalid/", "npm publish", "docker run x"),
)

# Ways to run a command that a parser of shell lines can see.
VISIBLE = (
    "{}", "true && {}", "false || {}", "cd /tmp; {}", "({})", "{{ {}; }}", "{} &", "! {}", "{} 2>&1 | cat",
    "ls | {}", "time {}", "env {}", "env A=1 {}", "env -i {}", "env -u A {}", "A=1 {}", "command {}", "exec {}",
    "nohup {}", "nice -n 5 {}", "timeout 5 {}", "timeout -k 1 5 {}", "stdbuf -o0 {}", "setsid {}", "ionice -c 3 {}",
    "sudo {}", "sudo -u root {}", "doas {}", "xargs {} < /dev/null", "echo x | xargs -I% {}", "find . -exec {} ';'",
    "builtin command {}", "find . -maxdepth 0 -execdir {} +", "sh -c '{}'", 'bash -lc "{}"', "bash -c 'true; {}'",
    "eval '{}'", "eval {}", "trap '{}' EXIT", "echo $({})", "echo `{}`", 'echo "$({})"', "cat <({})",
    "if true; then {}; fi", "f() {{ {}; }}; f", "while {}; do break; done", "for i in 1; do {}; done",
    "case x in x) {};; esac", "until {}; do break; done", "[[ -n $({}) ]]", "a=$({})", "export a=$({})",
    "echo ${{a:-$({})}}", "cat <<E\n$({})\nE", "ls\n{}", "ls # x\n{}", 'sh -c \'sh -c "{}"\'',
    "env sudo timeout 5 nice {}", "coproc {}", "bash <<'E'\n{}\nE", "bash <<< '{}'", "\\{}", "env -S '{}'",
    "command {} -v", "eval -- '{}'", "trap -- '{}' EXIT", ': "${{x:-`{}`}}"', "cat <<E\n`{}`\nE", "ls\n\\\n{}",
    "time {{ {}; }}", "flock x -c '{}'", "script -q -c'{}' x", "bash -s x <<< '{}'", ". /dev/stdin <<< '{}'",
    "[[ 'a[$({})]' -eq 1 ]]", "timeout --sig KILL 5 {}", "ls && >x {}",
    "uv run {}", "uv run --with x {}", "uv run --frozen -- {}", "uvx {}", "uvx --from x {}", "npx {}", "npx -y {}",
    "npx --package x {}", "npx --package=x -- {}", "npm exec -- {}", "pnpm exec {}", "pnpm dlx {}", "yarn run {}",
    "poetry run {}", "pipenv run {}", "pdm run {}", "pipx run {}", "conda run -n x {}", "bundle exec {}", "bunx {}",
    "uv tool run {}", "env A=1 uv run sudo {}", "uv run sh -c '{}'", "mise exec -- {}", "hatch run {}",
    "npx -c '{}'", "npx --call='{}'", "npm exec -c '{}'", "pnpm exec -c '{}'", "yarn exec '{}'", "direnv exec . {}",
    "dotenv run -- {}", "op run --env-file=x -- {}", "volta run {}", "xvfb-run -a {}", "fakeroot {}",
)  # fmt: skip

# Ways that hide the command from a parser: only its container can be judged.
HIDDEN = (
    "echo '{}' | sh", "printf '%s' '{}' | bash", "x='{}'; $x", "x=g; ${{x}}it; {}", "echo '{}' > x.sh; sh x.sh",
    "echo '{}' > x.sh; chmod +x x.sh; ./x.sh", "alias a='{}'; a", "make -f - <<< $'all:\\n\\t{}'",
    "source <(echo '{}')", 'python3 -c "import os; os.system(\'{}\')"', 'perl -e \'system("{}")\'',
    'awk \'BEGIN {{ system("{}") }}\'', 'node -e "require(\'child_process\').execSync(\'{}\')"',
    "git -c alias.x='!{}' x", "vim -es -c ':!{}'", "ssh localhost '{}'", "script -c '{}' /dev/null",
    "watch -n1 '{}'", "ls $'\\n'; busybox sh -c '{}'", "parallel ::: '{}'", "su -c '{}'",
)  # fmt: skip


def measure_catch_rate(ways: tuple[str, ...]) -> tuple[int, int, list[str]]:
    """Judge all commands in all ways. Return how many lines are denied or asked about, all, and the missed lines."""
    rules = PermissionRules(build_rules(LISTS, "the suite"))
    lines = [way.format(command) for way in ways for command in COMMANDS]
    missed = [line for line in lines if rules.judge_line(line).verdict not in ("deny", "ask")]
    return len(lines) - len(missed), len(lines), missed


def format_catch_rate() -> str:
    """Format both rates as one line."""
    visible, hidden = measure_catch_rate(VISIBLE), measure_catch_rate(HIDDEN)
    return (
        f"caught {visible[0]} of {visible[1]} lines with the command in sight, {hidden[0]} of {hidden[1]} that hide it"
    )
