import ArgumentParser

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
