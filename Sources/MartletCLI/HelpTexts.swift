import ArgumentParser
import Martlet

/// A shell for which the program generates a completion script from its tables of commands and options.
enum ShellCompletions: String, CaseIterable, ExpressibleByArgument {
    case bash, zsh, fish

    var script: String {
        switch self {
        case .bash: ShellCompletions.bashScript
        // With `bashcompinit`, zsh runs completion scripts for bash.
        case .zsh: "autoload -U +X bashcompinit && bashcompinit\n" + ShellCompletions.bashScript
        case .fish: ShellCompletions.fishScript
        }
    }

    /// The commands after `martlet queue` and `martlet cache`.
    private static let subcommands = [("queue", QueueCommand.configuration), ("cache", CacheCommand.configuration)].map
    { ($0, $1.subcommands.compactMap { $0.configuration.commandName }.joined(separator: " ")) }

    private static var bashScript: String {
        let commands = MartletCommand.commands.map(\.name).joined(separator: " ")
        let cases = MartletCommand.wordsCommands.map { command in
            "        \(command.path.joined(separator: "-"))) words=\"\(names(command.options))\" ;;"
        }
        let groups = subcommands.map { "        \($0)) words=\"\($1)\" ;;" }
        return """
            _martlet() {
                local current="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]}" words=""
                COMPREPLY=()
                case " \(commands) " in
                    *" $command "*) ;;
                    *) command=get ;;
                esac
                if [[ $COMP_CWORD -eq 1 && $current != -* ]]; then
                    words="\(commands)"
                elif [[ $COMP_CWORD -eq 2 && $current != -* ]]; then
                    case "$command" in
            \(groups.joined(separator: "\n"))
                    esac
                elif [[ $current == -* ]]; then
                    case "$command" in
                        queue) command="queue-${COMP_WORDS[2]}" ;;
                    esac
                    case "$command" in
            \(cases.joined(separator: "\n"))
                    esac
                fi
                [[ -z $words ]] || COMPREPLY=($(compgen -W "$words" -- "$current"))
            }
            complete -o default -F _martlet martlet

            """
    }

    private static func names(_ options: CommandOptions) -> String {
        options.listed.map { "--\($0.name)" + ($0.letter.map { " -\($0)" } ?? "") }.joined(separator: " ")
    }

    private static var fishScript: String {
        let commands = MartletCommand.commands
        var lines = commands.map { name, purpose in
            "complete -c martlet -n __fish_use_subcommand -a \(name) -d '\(quoted(purpose))'"
        }
        lines += subcommands.map { "complete -c martlet -n '__fish_seen_subcommand_from \($0)' -a '\($1)'" }
        for command in MartletCommand.wordsCommands {
            let condition =
                command.path == ["get"]
                ? "not __fish_seen_subcommand_from \(commands.dropFirst().map(\.name).joined(separator: " "))"
                : command.path.map { "__fish_seen_subcommand_from \($0)" }.joined(separator: "; and ")
            for option in command.options.listed {
                let letter = option.letter.map { " -s '\(quoted(String($0)))'" } ?? ""
                let value = option.valueName.isEmpty ? "" : " -r"
                lines.append(
                    "complete -c martlet -n '\(condition)' -l \(option.name)\(letter)\(value) -d '\(quoted(option.help))'"
                )
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func quoted(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("'", with: "\\'")
    }
}

struct CompletionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "completions", abstract: "Print a completion script: source <(martlet completions bash)")

    @Argument(help: "bash, zsh or fish") var shell: ShellCompletions

    mutating func run() async throws { try await Console.print(shell.script) }
}

/// The manual page of the program in the format of man(7), generated from its tables of options.
enum ManualPage {
    static var text: String {
        var lines = [
            ".TH MARTLET 1 \"\" \"martlet \(martletVersion)\" \"User Commands\"", ".SH NAME",
            "martlet \\- \(escaped(MartletCommand.configuration.abstract))", ".SH SYNOPSIS",
        ]
        for command in MartletCommand.wordsCommands { lines += [".B \(escaped(command.options.usage))", ".br"] }
        lines += [".B martlet COMMAND", ".SH COMMANDS"] + list(MartletCommand.commands.map { ($0, $1) })
        lines.append(".PP\nFor commands without a section below, use \\fBmartlet help\\fR COMMAND.")
        for command in MartletCommand.wordsCommands { lines += ManualPage.lines(command) }
        lines += [".SH EXIT STATUS"] + list(exitCodes) + [".SH ENVIRONMENT"] + list(environment)
        return lines.joined(separator: "\n") + "\n"
    }

    private static func list(_ items: [(String, String)]) -> [String] {
        items.flatMap { [".TP", ".B \(escaped($0))", escaped($1)] }
    }

    private static func lines(_ command: any WordsCommand.Type) -> [String] {
        var lines = [".SH OPTIONS OF \(command.path.joined(separator: " ").uppercased())"]
        for option in command.options.listed {
            let letter = option.letter.map { "\\fB\\-\(escaped(String($0)))\\fR, " } ?? ""
            let value = option.valueName.isEmpty ? "" : " \\fI\(escaped(option.valueName))\\fR"
            lines += [".TP", "\(letter)\\fB\\-\\-\(escaped(option.name))\\fR\(value)", escaped(option.help)]
        }
        let notes = command.options.notes
        guard !notes.isEmpty else { return lines }
        let text = notes.split(separator: "\n", omittingEmptySubsequences: false).drop { $0.isEmpty }
        return lines + [".PP", ".nf"] + text.map { escaped(String($0)) } + [".fi"]
    }

    /// Escapes a text for roff: no character of it starts a request or an escape sequence.
    static func escaped(_ text: String) -> String {
        let inner = text.replacing("\\", with: "\\e").replacing("-", with: "\\-")
        return inner.hasPrefix(".") || inner.hasPrefix("'") ? "\\&\(inner)" : inner
    }

    static let exitCodes = [
        ("0", "success"), ("1", "unsupported scheme; a failed demo"), ("2", "mistake on the command line"),
        ("3", "malformed URL"), ("5, 6", "the name of the proxy, or of the host, cannot be resolved"),
        ("7", "no connection"), ("8", "invalid response"), ("18", "incomplete body"),
        ("22", "status 400 or above with -f; a rejected download or queued request"),
        ("23", "output cannot be written"), ("26", "input cannot be read"), ("28", "timeout"),
        ("33", "the server sent another range"), ("35, 60", "TLS failed; the certificate was rejected"),
        ("45", "unusable local interface or address"), ("47", "too many redirects"), ("52", "empty response"),
        ("55, 56", "sending, or receiving, failed"),
        ("58, 59, 77, 82, 90", "client certificate, ciphers, file of authorities, revocation lists, pinned key"),
        ("61", "content coding that cannot be decoded"), ("63", "too large"), ("65", "the body cannot be resent"),
        ("94", "authentication failed"), ("97", "the proxy opened no tunnel"), ("100", "a checksum does not match"),
        ("101", "the file changed repeatedly during the download"), ("102", "the download cannot be resumed"),
        ("103", "offline; requests are left in the queue"), ("104", "not in the cache"), ("105", "the disk is full"),
        ("106", "another download or program uses the file or directory"),
        ("130, 143", "SIGINT, SIGTERM; received bytes are kept"),
    ]

    private static let environment = [
        ("http_proxy, https_proxy, all_proxy, no_proxy", "proxies, and the hosts that need none"),
        ("SSL_CERT_FILE, SSL_CERT_DIR", "trusted authorities"),
        ("SSLKEYLOGFILE", "file for the secrets of TLS connections, to decrypt captured traffic"),
        ("NO_COLOR", "progress bars without colors"), ("XDG_STATE_HOME", "parent of the default directory of queues"),
    ]
}

struct ManualCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "manual", abstract: "Print the manual page: martlet manual | man -l -")

    mutating func run() async throws { try await Console.print(ManualPage.text) }
}

/// The help of the program: one screen, or everything.
enum HelpText {
    /// The help text that a command line requests; `nil` if it requests none, or one that ArgumentParser prints.
    static func text(for words: [String]) -> String? {
        switch words {
        case ["help"], ["--help"], ["-h"]: short
        case ["help", "all"], ["--help", "all"], ["-h", "all"]: all
        // ArgumentParser does not know the options of these commands.
        default: MartletCommand.wordsCommands.first { words == ["help"] + $0.path }.map { $0.options.help + "\n" }
        }
    }

    /// The commands and the most used options: at most 24 lines of 80 columns.
    static var short: String {
        """
        USAGE: martlet [get] [options] URL...   or   martlet COMMAND [options]

        COMMANDS:
        \(commands)

        OPTIONS OF get:
          -o FILE  Write the body to a file      -X METHOD  Use this method
          -d DATA  Send data with POST           -H LINE    Set a header field
          -F PART  Send a multipart form         -u USER:PASSWORD  Set credentials
          -T FILE  Upload a file with PUT        -i, -I     Print the head too, or alone
          -L, -f   Follow redirects, fail at 400 -s, -v     Print less, or more

        “martlet help COMMAND” and “martlet help all” list all options.

        """
    }

    private static var commands: String {
        let width = MartletCommand.commands.map(\.name.count).max() ?? 0
        return MartletCommand.commands.map { "  \(ColumnText.fitted($0, to: width))  \($1)" }.joined(separator: "\n")
    }

    static var all: String {
        let sections = MartletCommand.subcommands.flatMap { command in
            [command] + (MartletCommand.groups.contains { $0 == command } ? command.configuration.subcommands : [])
        }.map { command in
            (command as? any WordsCommand.Type)?.options.help ?? MartletCommand.helpMessage(for: command, columns: 80)
        }
        let rule = "\n" + String(repeating: "-", count: 79) + "\n"
        return ([short] + sections.map { $0.hasSuffix("\n") ? $0 : "\($0)\n" }).joined(separator: rule)
    }
}
