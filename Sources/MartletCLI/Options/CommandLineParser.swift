/// Reads a command line as curl does: clusters of letters, long names, values as the next word or the rest of
/// a cluster, options and URLs in any order.
struct CommandLineParser {
    /// The maximum depth of files of options that name other files.
    private static let configDepthLimit = 8

    private(set) var groups: [TransferOptions]
    private let options: CommandOptions
    private var depth = 0
    private var last: Int { groups.count - 1 }

    init(_ options: CommandOptions = GetCommand.options) {
        self.options = options
        groups = [options.defaults]
    }

    /// - Throws: A ``UsageError`` that names the option.
    mutating func read(_ words: [String]) throws(UsageError) {
        var rest = words[...]
        var endsOptions = false
        while let word = rest.popFirst() {
            if endsOptions || !word.hasPrefix("-") || word == "-" {
                groups[last].urls.append(word)
            } else if word == "--" {
                endsOptions = true
            } else {
                try readOption(word, &rest)
            }
        }
    }

    private mutating func readOption(_ word: String, _ rest: inout ArraySlice<String>) throws(UsageError) {
        guard !word.hasPrefix("--") else {
            _ = try apply(try option(named: String(word.dropFirst(2))), shown: word, "", &rest)
            return
        }
        var letters = word.dropFirst()
        while let letter = letters.popFirst() {
            guard let option = options[letter] else { throw UsageError("option -\(letter): is unknown") }
            if try apply(option, shown: "-\(letter)", letters, &rest) { return }
        }
    }

    /// - Parameter attached: The rest of a cluster; a value is that, or the next word if it is empty.
    /// - Returns: Whether the option took a value.
    private mutating func apply(
        _ option: CurlOption, shown: String, _ attached: Substring, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> Bool {
        func value() throws(UsageError) -> String {
            if !attached.isEmpty { return String(attached) }
            guard let next = rest.popFirst() else { throw UsageError("option \(shown): needs a value") }
            return next
        }
        switch option.kind {
        case .flag(let change): try change(&groups[last])
        case .value(let change):
            let value = try value()
            groups[last].given.append((option.name, value))
            try change(&groups[last], value)
            return true
        case .config:
            try readConfig(try value())
            return true
        case .next:
            try check(!groups[last].urls.isEmpty, "option \(shown): no URL stands before it")
            var next = TransferOptions()
            next.global = groups[last].global
            groups.append(next)
        case .refused(let reason): throw UsageError("option \(shown): \(reason)")
        }
        return false
    }

    /// An option by its long name; one that begins with `no-` is the opposite of a flag where curl has such.
    private func option(named name: String) throws(UsageError) -> CurlOption {
        if let option = options[name] { return option }
        if name.hasPrefix("no-"), let option = options[String(name.dropFirst(3))] {
            // Switching off a feature that does not exist changes nothing.
            if case .refused = option.kind { return .flag(name) { _ in } }
            if let opposite = option.opposite { return .flag(name, nil, "", opposite) }
        }
        throw UsageError("option --\(name): is unknown")
    }

    private mutating func readConfig(_ name: String) throws(UsageError) {
        try check(
            depth < CommandLineParser.configDepthLimit,
            "option -K: files of options name one another too deep")
        let text = String(decoding: try InputFile.contents(of: name), as: UTF8.self)
        depth += 1
        defer { depth -= 1 }
        for line in try ConfigFile.lines(of: text, named: name) { try read(line) }
    }

    /// Reads the option of a line: its value is on that line.
    private mutating func read(_ line: ConfigFile.Line) throws(UsageError) {
        var rest = [line.value].compactMap { $0 }[...]
        do throws(UsageError) { try readOption(line.word, &rest) } catch {
            throw UsageError("\(line.place): \(error)", status: error.status)
        }
        try check(rest.isEmpty || line.value == "", "\(line.place): option \(line.word): takes no value")
        if line.hasRest {
            groups[last].global.warnings.append(
                "\(line.place): the value ends at a blank; put it into quotes for more")
        }
    }
}

/// The options of the whole command line, in whichever group they are given.
struct GlobalOptions: Sendable {
    /// The form in which the progress of a transfer to a file is shown.
    enum Progress: String, Sendable, CaseIterable {
        /// A bar on a terminal, lines elsewhere.
        case auto
        /// A bar, redrawn in place.
        case bar
        /// Lines.
        case plain
        /// One JSON object a line.
        case json
        case none
    }

    var isSilent = false
    var showsErrors = false
    var isVerbose = false
    var stopsAtFirstError = false
    var isParallel = false
    var parallelLimit = 50
    var progress = Progress.auto
    var harFile: String?
    /// Whether each transfer is followed by a picture of the times of its phases.
    var showsTimeline = false
    /// Warnings about a command line that is carried out nevertheless.
    var warnings: [String] = []
    var showsVersion = false
    var showsHelp = false

    /// The form of the progress of a transfer: the bars of several would be drawn over one another.
    var shownProgress: Progress {
        if isSilent { return .none }
        return isParallel && (progress == .auto || progress == .bar) ? .plain : progress
    }

    var tellsErrors: Bool { !isSilent || showsErrors }
}

/// A command line that cannot be carried out; nothing was sent.
struct UsageError: Error, Sendable, CustomStringConvertible {
    var description: String
    var status: ExitStatus

    init(_ description: String, status: ExitStatus = .usage) {
        self.description = description
        self.status = status
    }

    /// Reports the error on standard error.
    func tell() async { await Console.report("(\(status.code)) \(self)") }
}

/// Throws a ``UsageError`` unless a condition holds.
func check(
    _ condition: Bool, _ message: @autoclosure () -> String, status: ExitStatus = .usage
) throws(UsageError) {
    if !condition { throw UsageError(message(), status: status) }
}
