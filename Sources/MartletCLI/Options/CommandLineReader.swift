/// Reads a command line as curl does: clusters of letters, long names, values as the next word or the rest of
/// a cluster, options and URLs in any order.
struct CommandLineReader {
    /// How deep files of options may name other files.
    private static let configDepthLimit = 8

    /// What was read.
    private(set) var groups: [OptionGroup]
    private let options: CommandOptions
    private var depth = 0

    /// A reader of the options of a command, which begins with what holds where nothing is said.
    init(_ options: CommandOptions = OptionTable.commandOptions, defaults: OptionGroup = OptionGroup()) {
        self.options = options
        groups = [defaults]
    }

    /// Reads the words of a command line.
    /// - Throws: A ``UsageError`` that names the option.
    mutating func read(_ words: [String]) throws(UsageError) {
        var index = 0
        var endsOptions = false
        while index < words.count {
            let word = words[index]
            index += 1
            if endsOptions || !word.hasPrefix("-") || word == "-" {
                groups[groups.count - 1].transfer.urls.append(word)
            } else if word == "--" {
                endsOptions = true
            } else {
                try readOption(word, words, &index)
            }
        }
    }

    private mutating func readOption(_ word: String, _ words: [String], _ index: inout Int) throws(UsageError)
    {
        if word.hasPrefix("--") {
            let option = try option(named: String(word.dropFirst(2)))
            try apply(option, shown: word, rest: nil, words, &index)
        } else {
            try readCluster(word, words, &index)
        }
    }

    private mutating func readCluster(_ word: String, _ words: [String], _ index: inout Int)
        throws(UsageError)
    {
        var letters = word.dropFirst()
        while let letter = letters.popFirst() {
            guard let option = options[letter] else { throw UsageError("option -\(letter): is unknown") }
            switch option.kind {
            case .value, .config:
                // The value is what is left of the word, or else the next word.
                try apply(
                    option, shown: "-\(letter)", rest: letters.isEmpty ? nil : String(letters), words, &index)
                return
            case .flag, .next, .refused: try apply(option, shown: "-\(letter)", rest: nil, words, &index)
            }
        }
    }

    private mutating func apply(
        _ option: CurlOption, shown: String, rest: String?, _ words: [String], _ index: inout Int
    ) throws(UsageError) {
        switch option.kind {
        case .flag(let change): try change(&groups[groups.count - 1])
        case .value(let change):
            let value = try CommandLineReader.value(of: shown, rest, words, &index)
            groups[groups.count - 1].given.append((option.name, value))
            try change(&groups[groups.count - 1], value)
        case .config:
            let name = try CommandLineReader.value(of: shown, rest, words, &index)
            try readConfig(name)
        case .next:
            guard !groups[groups.count - 1].transfer.urls.isEmpty else {
                throw UsageError("option \(shown): no URL stands before it")
            }
            var next = OptionGroup()
            next.global = groups[groups.count - 1].global
            groups.append(next)
        case .refused(let reason): throw UsageError("option \(shown): \(reason)")
        }
    }

    private static func value(
        of shown: String, _ rest: String?, _ words: [String], _ index: inout Int
    ) throws(UsageError) -> String {
        if let rest { return rest }
        guard index < words.count else { throw UsageError("option \(shown): needs a value") }
        index += 1
        return words[index - 1]
    }

    /// An option by its long name; one that begins with `no-` is the opposite of a flag where curl has such.
    private func option(named name: String) throws(UsageError) -> CurlOption {
        if let option = options[name] { return option }
        if name.hasPrefix("no-"), let option = options[String(name.dropFirst(3))] {
            if case .refused = option.kind {
                // Switching off what there is not changes nothing.
                return .flag(name) { _ in }
            }
            if let opposite = option.opposite { return .flag(name, nil, "", opposite) }
        }
        throw UsageError("option --\(name): is unknown")
    }

    private mutating func readConfig(_ name: String) throws(UsageError) {
        guard depth < CommandLineReader.configDepthLimit else {
            throw UsageError("option -K: files of options name one another too deep")
        }
        let text = String(decoding: try InputFile.contents(of: name), as: UTF8.self)
        depth += 1
        defer { depth -= 1 }
        for line in try ConfigFile.lines(of: text, named: name) { try read(line) }
    }

    /// Reads the option of a line: what it takes, or does not take, is on that line.
    private mutating func read(_ line: ConfigFile.Line) throws(UsageError) {
        let words = [line.word] + [line.value].compactMap { $0 }
        var index = 1
        do throws(UsageError) {
            try readOption(line.word, words, &index)
        } catch {
            throw UsageError("\(line.place): \(error)", status: error.status)
        }
        guard index == words.count || line.value == "" else {
            throw UsageError("\(line.place): option \(line.word): takes no value")
        }
        if line.hasRest {
            groups[groups.count - 1].global.warnings.append(
                "\(line.place): the value ends at a blank; put it into quotes for more")
        }
    }
}

/// The options up to `--next`, with those that hold for the whole.
struct OptionGroup: Sendable {
    /// What holds for this group.
    var transfer = TransferOptions()
    /// What holds for all.
    var global = GlobalOptions()
    /// What only `download` has a use for.
    var download = DownloadWish()
    /// What only `queue` has a use for.
    var queue = QueueWish()
    /// The values of options as they were given, also of those that others replaced later.
    var given: [(option: String, value: String)] = []
}

/// What holds for the whole command line, whichever group it stands in.
struct GlobalOptions: Sendable {
    /// How a transfer to a file shows how far it has come.
    enum Progress: String, Sendable, CaseIterable {
        /// A bar on a terminal, lines elsewhere.
        case auto
        /// A bar, drawn again in place.
        case bar
        /// Lines.
        case plain
        /// One JSON object a line.
        case json
        /// Nothing.
        case none
    }

    var isSilent = false
    var showsErrors = false
    var isVerbose = false
    var stopsAtFirstError = false
    /// Whether all transfers are made at the same time.
    var isParallel = false
    /// How many of them at most.
    var parallelLimit = 50
    var progress = Progress.auto
    /// The file of `--har`.
    var harFile: String?
    /// Whether each transfer is followed by a picture of when its parts happened.
    var showsTimeline = false
    /// What users are told of the command line that is carried out all the same.
    var warnings: [String] = []
    var showsVersion = false
    var showsHelp = false

    /// How a transfer shows how far it has come: bars of several would be drawn over one another.
    var shownProgress: Progress {
        if isSilent { return .none }
        return isParallel && (progress == .auto || progress == .bar) ? .plain : progress
    }

    /// Whether errors are told.
    var tellsErrors: Bool { !isSilent || showsErrors }
}

/// A command line that cannot be carried out; nothing was sent.
struct UsageError: Error, Sendable, CustomStringConvertible {
    /// What is wrong with it.
    var description: String
    /// The exit code.
    var status: ExitStatus

    init(_ description: String, status: ExitStatus = .usage) {
        self.description = description
        self.status = status
    }

    /// Says on standard error what is wrong.
    func tell() async { await Console.complain("martlet: (\(status.code)) \(self)\n") }
}
