import Martlet

/// Reads a command line as curl does: clusters of letters, long names, values as the next word or the rest of
/// a cluster, options and URLs in any order.
struct CommandLineParser {
    /// The maximum nesting of option files that name other option files (`-K`).
    private static let configDepthLimit = 8

    private(set) var groups: [TransferOptions]
    private let options: CommandOptions
    private var depth = 0
    private var last: Int { groups.count - 1 }

    init(_ options: CommandOptions = GetCommand.options) {
        self.options = options
        groups = [options.defaults]
    }

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
            // Unlike curl, `--name=value` is accepted as well.
            let mark = word.first("=") ?? word.endIndex
            let (name, value) = (word[..<mark], mark < word.endIndex ? word.rest(after: mark) : nil)
            return try UsageError.at("option \(name)") { () throws(UsageError) in
                let option = try option(named: String(name.dropFirst(2)))
                try apply(option, value, &rest)
            }
        }
        var letters = word.dropFirst()
        while let letter = letters.popFirst() {
            try UsageError.at("option -\(letter)") { () throws(UsageError) in
                guard let option = options[letter] else { throw UsageError("is unknown") }
                let value = option.takesValue && !letters.isEmpty ? String(letters) : nil
                if value != nil { letters = "" }
                try apply(option, value, &rest)
            }
        }
    }

    /// - Parameter attached: The value in the option's own word; `nil` if a value is the next word.
    private mutating func apply(_ option: CurlOption, _ attached: String?, _ rest: inout ArraySlice<String>)
        throws(UsageError)
    {
        func value() throws(UsageError) -> String {
            guard let value = attached ?? rest.popFirst() else {
                throw UsageError("needs a value: \(option.valueName)")
            }
            return value
        }
        switch option.kind {
        case .flag(let change):
            try check(attached == nil, "takes no value")
            try change(&groups[last])
        case .value(let change):
            let value = try value()
            groups[last].given.append((option.name, value))
            try change(&groups[last], value)
        case .config: try readConfig(try value())
        case .next:
            try check(attached == nil, "takes no value")
            try check(!groups[last].urls.isEmpty, "needs a URL before it")
            var next = TransferOptions()
            next.global = groups[last].global
            groups.append(next)
        case .rejected(let reason): throw UsageError(reason)
        }
    }

    /// Finds an option by its long name. `no-NAME` is the opposite of the option `NAME`, if it has one.
    private func option(named name: String) throws(UsageError) -> CurlOption {
        if let option = options[name] { return option }
        if name.hasPrefix("no-"), let option = options[String(name.dropFirst(3))] {
            // Switching off an unsupported feature has no effect.
            if case .rejected = option.kind { return .ignored("--\(name)") }
            if let opposite = option.opposite { return .flag("--\(name)", "", opposite) }
        }
        let similar = Spelling.suggestion(for: name, among: options.listed.map(\.name))
        throw UsageError("is unknown" + (similar.map { "; did you mean --\($0)?" } ?? ""))
    }

    private mutating func readConfig(_ name: String) throws(UsageError) {
        try check(
            depth < CommandLineParser.configDepthLimit,
            "option files are nested more than \(CommandLineParser.configDepthLimit) deep")
        let text = try InputFile.text(of: name)
        depth += 1
        defer { depth -= 1 }
        for line in try ConfigFile.lines(of: text, named: name) { try read(line) }
    }

    /// Reads the option of a line: its value is on that line.
    private mutating func read(_ line: ConfigFile.Line) throws(UsageError) {
        var rest = [line.value].compactMap { $0 }[...]
        try UsageError.at(line.place) { () throws(UsageError) in try readOption(line.word, &rest) }
        try check(rest.isEmpty || line.value == "", "\(line.place): option \(line.word): takes no value")
        if line.hasRest {
            groups[last].global.warnings.append("\(line.place): the value ends at the first blank; use quotes for more")
        }
    }
}

/// The options that apply to the whole command line, from any of its groups.
struct GlobalOptions: Sendable {
    /// The form of progress output for a transfer to a file.
    enum Progress: Sendable {
        /// `auto` is a bar on a terminal and lines otherwise; `json` is one object per line.
        case auto, bar, plain, json, none
    }

    var isSilent = false
    var showsErrors = false
    var isVerbose = false
    var stopsAtFirstError = false
    var isParallel = false
    var parallelLimit = 50
    var progress = Progress.auto
    var harFile: String?
    /// Whether each transfer is followed by a chart of the times of its phases.
    var showsTimeline = false
    /// Warnings about a command line that is executed anyway.
    var warnings: [String] = []
    var showsVersion = false
    var showsHelp = false

    /// The form to use. Concurrent transfers have lines, because their bars would be drawn over one another.
    var shownProgress: Progress {
        if isSilent { return .none }
        return isParallel && (progress == .auto || progress == .bar) ? .plain : progress
    }

    var printsErrors: Bool { !isSilent || showsErrors }
}

/// An error that prevents a command from running or from continuing, with its exit code.
struct UsageError: Error, Sendable, CustomStringConvertible {
    var description: String
    var status: ExitStatus

    init(_ description: String, status: ExitStatus = .usage) { (self.description, self.status) = (description, status) }

    /// Runs a function whose errors get a prefix: an option, or a line of a file.
    static func at<Value>(_ place: String, _ body: () throws(UsageError) -> Value) throws(UsageError) -> Value {
        do throws(UsageError) { return try body() } catch {
            throw UsageError("\(place): \(error)", status: error.status)
        }
    }

    @discardableResult func printMessage() async -> ExitStatus { await status.reporting("(\(status.code)) \(self)") }
}

func check(_ condition: Bool, _ message: @autoclosure () -> String, status: ExitStatus = .usage) throws(UsageError) {
    if !condition { throw UsageError(message(), status: status) }
}

/// A file of options, as curl's `-K` reads it: one per line, `name value`, `name = value` or `name: value`.
enum ConfigFile {
    struct Line: Hashable, Sendable {
        /// The option as on a command line: `--name`, `-n`, or a cluster of letters.
        var word: String
        var value: String?
        /// The file and the line, for messages.
        var place: String
        /// Whether more than a comment follows the value, which ended at a blank.
        var hasRest = false
    }

    static func lines(of text: String, named name: String) throws(UsageError) -> [Line] {
        var lines: [Line] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let line = line.drop(while: isBlank)
            guard let first = line.first, first != "#" else { continue }
            let option = line.prefix { !isBlank($0) && $0 != "=" && $0 != ":" }
            let place = "\(name), line \(index + 1)"
            try check(option.contains(where: { $0 != "-" }), "\(place): no option")
            var entry = Line(word: option.hasPrefix("-") ? String(option) : "--\(option)", place: place)
            var rest = line.dropFirst(option.count).drop(while: isBlank)
            if let separator = rest.first, separator == "=" || separator == ":" {
                rest = rest.dropFirst().drop(while: isBlank)
            }
            if rest.first == "\"" {
                entry.value = try quoted(rest.dropFirst(), place)
            } else {
                let value = rest.prefix { !isBlank($0) }
                if !value.isEmpty, value.first != "#" { entry.value = String(value) }
                let remainder = rest.dropFirst(value.count).drop(while: isBlank)
                entry.hasRest = entry.value != nil && !remainder.isEmpty && remainder.first != "#"
            }
            lines.append(entry)
        }
        return lines
    }

    private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }

    private static func quoted(_ text: Substring, _ place: String) throws(UsageError) -> String {
        let escapes: [Character: Character] = ["n": "\n", "t": "\t", "r": "\r", "v": "\u{B}"]
        var value = ""
        var isEscaped = false
        for character in text {
            if isEscaped {
                value.append(escapes[character] ?? character)
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else if character == "\"" {
                return value
            } else {
                value.append(character)
            }
        }
        throw UsageError("\(place): a quote is not closed")
    }
}

/// Files that options name; `-` is standard input.
enum InputFile {
    /// The contents of a file. Blocks.
    static func contents(of name: String) throws(UsageError) -> [UInt8] {
        do {
            if name == "-" { return try rest(of: .standardInput) }
            let file = try FileDescriptor.open(FilePath(name), .readOnly, options: .closeOnExec)
            defer { try? file.close() }
            return try rest(of: file)
        } catch { throw UsageError("could not read “\(name)”: \(error)", status: .readFailed) }
    }

    /// The text of a file, which must be UTF-8: repaired, it would send or print other bytes than those of the file.
    /// Blocks.
    static func text(of name: String) throws(UsageError) -> String {
        guard let text = String(validating: try contents(of: name), as: UTF8.self) else {
            throw UsageError("“\(name)” is not UTF-8")
        }
        return text
    }

    /// The contents of the file that a value names after `@`; `nil` for a value without `@`. Blocks.
    static func contents(afterAtOf value: String) throws(UsageError) -> [UInt8]? {
        value.begins(with: "@") ? try contents(of: value.rest(after: value.startIndex)) : nil
    }

    /// The text of the file that a value names after `@`; `nil` for a value without `@`. Blocks.
    static func text(afterAtOf value: String) throws(UsageError) -> String? {
        value.begins(with: "@") ? try text(of: value.rest(after: value.startIndex)) : nil
    }

    private static func rest(of file: FileDescriptor) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while case let piece = try file.bytes(atMost: 256 * 1024), !piece.isEmpty { bytes += piece }
        return bytes
    }
}
