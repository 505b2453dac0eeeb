import ArgumentParser
import Martlet

/// The manual page of the program, made from the tables of its options (man(7)).
enum ManualPage {
    /// The page as source for `man`.
    static var text: String {
        var lines = [
            ".TH MARTLET 1 \"\" \"martlet \(martletVersion)\" \"User Commands\"", ".SH NAME",
            "martlet \\- \(escaped(MartletCommand.configuration.abstract))", ".SH SYNOPSIS",
        ]
        for command in MartletCommand.wordsCommands {
            lines += [".B \(escaped(command.options.usage))", ".br"]
        }
        lines += [".B martlet COMMAND", ".SH COMMANDS"] + list(MartletCommand.commands.map { ($0, $1) })
        lines.append(".PP\nOf those without a section below, \\fBmartlet help\\fR COMMAND has the options.")
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

    /// A text without commands of the page's language.
    static func escaped(_ text: String) -> String {
        let inner = text.replacing("\\", with: "\\e").replacing("-", with: "\\-")
        return inner.hasPrefix(".") || inner.hasPrefix("'") ? "\\&\(inner)" : inner
    }

    private static let exitCodes = [
        ("0", "all went well"), ("1", "a scheme that is not known"), ("2", "a mistake on the command line"),
        ("3", "a malformed URL"), ("5, 6", "the proxy's, the host's name is not known"),
        ("7", "no connection"), ("8", "an answer that is none"), ("18", "a body that was cut"),
        ("22", "a status of 400 or above, with -f; a download's, a queue's request that was refused"),
        ("23", "what came could not be written"), ("26", "what was to be sent could not be read"),
        ("28", "a clock ran out"), ("33", "another part came than was asked for"),
        ("35, 60", "TLS failed; the certificate was refused"), ("45", "no such interface"),
        ("47", "too many redirects"), ("52", "an empty reply"), ("55, 56", "sending, receiving failed"),
        ("58, 59, 77, 82, 90", "client certificate, ciphers, file of authorities, revocation lists, pin"),
        ("61", "a content coding that cannot be undone"), ("63", "too large"), ("94", "authentication"),
        ("97", "the proxy opened no way"), ("100", "a checksum does not match"),
        ("101", "the file changed again and again while it was downloaded"),
        ("102", "what is there cannot be gone on with"), ("103", "offline; requests are left in the queue"),
        ("104", "not in the cache"), ("105", "the disk is full"),
        ("106", "another program is about it already"), ("130", "SIGINT; what has come is kept"),
    ]

    private static let environment = [
        ("http_proxy, https_proxy, all_proxy, no_proxy", "proxies, and what needs none"),
        ("SSL_CERT_FILE, SSL_CERT_DIR", "trusted authorities"),
        ("SSLKEYLOGFILE", "a file for the secrets of TLS, to read what was captured"),
        ("NO_COLOR", "bars without colours"),
        ("XDG_STATE_HOME, XDG_CONFIG_HOME, XDG_CACHE_HOME", "where folders of one's own are"),
    ]
}

/// `martlet manual`: the manual page.
struct ManualCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "manual",
        abstract: "Print the manual page: martlet manual | man -l -")

    mutating func run() async throws { try await Console.print(ManualPage.text) }
}
