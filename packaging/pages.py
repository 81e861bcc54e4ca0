"""The man page, and completions for bash, zsh and fish."""

from __future__ import annotations

from helptext import Command, Option

FILES = ("FILE", "DIR", "PATH")


def man(root: Command, version: str, date: str) -> str:
    """The manual in roff, of all commands in one page."""
    out = [
        f'.TH BOWSHOT 1 "{date}" "bowshot {version}" "User Commands"',
        ".SH NAME",
        f"bowshot \\- {_roff(root.about)}",
        ".SH SYNOPSIS",
        *(f".B {_roff(command.usage)}\n.br" for command in root.commands),
        ".SH DESCRIPTION",
        _roff(root.about) + ".",
    ]
    for command in root.commands:
        out += [f".SH BOWSHOT {command.name.upper()}", _roff(command.about) + "."]
        for name, about in command.arguments:
            out += [".TP", f".I {_roff(name)}", _roff(about)]
        for option in command.options:
            names = ", ".join(filter(None, [option.short, option.long]))
            value = f" \\fI{_roff(option.value)}\\fR" if option.value else ""
            out += [".TP", f"\\fB{_roff(names)}\\fR{value}", _roff(option.about)]
        if command.after:
            out += [".PP", _roff(command.after)]
    out += [
        ".SH EXIT STATUS",
        "0 good, 1 failed at run time, 2 wrong usage.",
        ".SH FILES",
        ".TP\n.I /etc/bowshot/bowshot.toml\nConfiguration of the service that the Debian package installs.",
    ]
    return "\n".join(out) + "\n"


def _roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def bash(root: Command) -> str:
    """Completion for bash."""
    cases = "".join(
        f"        {command.name}) words=\"{' '.join(_words(command.options))}\" ;;\n" for command in root.commands
    )
    values = "".join(
        f"        {option.long}) COMPREPLY=($(compgen -W \"{' '.join(option.choices)}\" -- \"$current\")); return ;;\n"
        for option in _all(root)
        if option.choices
    )
    files = "|".join(sorted({option.long for option in _all(root) if option.value in FILES}))
    names = " ".join(command.name for command in root.commands)
    return f"""# bash completion for bowshot, made from its command line
_bowshot() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    COMPREPLY=()
    case "$previous" in
{values}        {files}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    esac
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "{names} --help --version" -- "$current"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}    esac
    if [[ "$current" == -* ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    else
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _bowshot bowshot
"""


def zsh(root: Command) -> str:
    """Completion for zsh."""

    def quoted(text: str) -> str:
        return text.replace("'", "’").replace("[", "(").replace("]", ")").replace(":", "\\:")

    def specification(option: Option) -> str:
        value = ""
        if option.value:
            action = f"({' '.join(option.choices)})" if option.choices else "_files" if option.value in FILES else " "
            value = f":{option.value}:{action}"
        return f"'{option.long}[{quoted(option.about)}]{value}'"

    names = " ".join(f"'{command.name}:{quoted(command.about)}'" for command in root.commands)
    cases = "".join(
        f"        {command.name}) _arguments {' '.join(specification(option) for option in command.options)} '*:path:_files' ;;\n"
        for command in root.commands
    )
    return f"""#compdef bowshot
_bowshot() {{
    local -a commands=({names})
    if ((CURRENT == 2)); then
        _describe command commands
        return
    fi
    local command="$words[2]"
    shift words
    ((CURRENT--))
    case "$command" in
{cases}    esac
}}
_bowshot "$@"
"""


def fish(root: Command) -> str:
    """Completion for fish."""
    lines = ["complete -c bowshot -f -n __fish_use_subcommand -l help", "complete -c bowshot -f -n __fish_use_subcommand -l version"]
    for command in root.commands:
        about = command.about.replace("'", "’")
        lines.append(f"complete -c bowshot -f -n __fish_use_subcommand -a {command.name} -d '{about}'")
        for option in command.options:
            short = f" -s {option.short[1:]}" if option.short else ""
            value = f" -r -a '{' '.join(option.choices)}'" if option.choices else " -r" if option.value else ""
            about = option.about.replace("'", "’")
            seen = f"-n '__fish_seen_subcommand_from {command.name}'"
            lines.append(f"complete -c bowshot {seen} -l {option.long[2:]}{short}{value} -d '{about}'")
    return "\n".join(lines) + "\n"


def _words(options: list[Option]) -> list[str]:
    return [option.long for option in options]


def _all(root: Command) -> list[Option]:
    return [option for command in root.commands for option in command.options]
