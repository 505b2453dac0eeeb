import ArgumentParser
import Martlet

/// The manual page of the program, made of the tables of its options (man(7)).
enum ManualPage {
    /// The page, in the language of `man`.
    static var text: String {
        var lines = [
            ".TH MARTLET 1 \"\" \"martlet \(martletVersion)\" \"User Commands\"", ".SH NAME",
            "martlet \\- \(escaped(MartletCommand.configuration.abstract))", ".SH SYNOPSIS",
        ]
        for section in OptionSection.all { lines += [".B \(escaped(section.options.usage))", ".br"] }
        lines += [".B martlet COMMAND", ".SH COMMANDS"]
        for (name, purpose) in OptionSection.commands {
            lines += [".TP", ".B \(escaped(name))", escaped(purpose)]
        }
        lines.append(".PP\nOf those without a section below, \\fBmartlet help\\fR COMMAND has the options.")
        for section in OptionSection.all { lines += ManualPage.lines(section) }
        lines += [".SH EXIT STATUS"]
        for (code, meaning) in exitCodes { lines += [".TP", ".B \(code)", escaped(meaning)] }
        lines += [".SH ENVIRONMENT"]
        for (name, meaning) in environment { lines += [".TP", ".B \(escaped(name))", escaped(meaning)] }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func lines(_ section: OptionSection) -> [String] {
        var lines = [".SH OPTIONS OF \(section.words.joined(separator: " ").uppercased())"]
        for option in section.listed {
            let letter = option.letter.map { "\\fB\\-\(escaped(String($0)))\\fR, " } ?? ""
            let value = option.valueName.isEmpty ? "" : " \\fI\(escaped(option.valueName))\\fR"
            lines += [".TP", "\(letter)\\fB\\-\\-\(escaped(option.name))\\fR\(value)", escaped(option.help)]
        }
        guard !section.notes.isEmpty else { return lines }
        lines += [".PP", ".nf"]
        lines += section.notes.split(separator: "\n", omittingEmptySubsequences: false)
            .drop { $0.isEmpty }.map { escaped(String($0)) }
        lines.append(".fi")
        return lines
    }

    /// A text in which nothing is a command of the page's language.
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
        abstract: "Print the manual page: martlet manual | man -l -, or into share/man/man1/martlet.1.")

    mutating func run() async throws { try await Console.print(ManualPage.text) }
}

/// A command whose options are in a table, as manuals and shells are told of it.
struct OptionSection: Sendable {
    /// The words behind `martlet`.
    let words: [String]
    /// Its options.
    let options: CommandOptions
    /// What its help says besides.
    var notes = ""

    /// Those that are carried out and have something to say, in the order of the help.
    var listed: [CurlOption] { options.all.filter { !$0.help.isEmpty } }

    /// All there are; the first is what no command's name means, too.
    static let all = [
        OptionSection(words: ["get"], options: OptionTable.commandOptions),
        OptionSection(
            words: ["download"], options: DownloadOptionTable.commandOptions, notes: DownloadJSON.help),
        OptionSection(words: ["queue", "add"], options: QueueAddOptionTable.commandOptions),
        OptionSection(
            words: ["queue", "run"], options: QueueRunOptionTable.commandOptions, notes: QueueEventJSON.help),
    ]

    /// The commands, with what each does.
    static let commands: [(name: String, purpose: String)] = MartletCommand.configuration.subcommands.map {
        ($0.configuration.commandName ?? "", $0.configuration.abstract)
    }

    /// What is behind `martlet queue` and `martlet cache`.
    static let subcommands: [(name: String, words: [String])] = [
        ("queue", QueueCommand.configuration.subcommands.compactMap { $0.configuration.commandName }),
        ("cache", CacheCommand.configuration.subcommands.compactMap { $0.configuration.commandName }),
    ]
}
