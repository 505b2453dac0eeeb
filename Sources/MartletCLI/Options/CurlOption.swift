import ArgumentParser
import Martlet

/// One of curl's options, or of our own.
struct CurlOption: Sendable {
    /// Its long name, without dashes.
    var name: String
    /// Its letter, if it has one.
    var letter: Character?
    /// What it does here.
    var kind: OptionKind
    /// One line for the help; empty for options that are not listed there.
    var help: String
    /// What its value is called in the help.
    var valueName: String

    /// What the name does behind `--no-`; `nil` where there is no such option.
    var opposite: OptionKind.Change?

    /// A setting of a group of options.
    typealias Setting<Value> = any WritableKeyPath<OptionGroup, Value> & Sendable

    /// An option without a value.
    static func flag(
        _ name: String, _ letter: Character? = nil, _ help: String = "",
        opposite: OptionKind.Change? = nil, _ apply: @escaping OptionKind.Change
    ) -> CurlOption {
        CurlOption(
            name: name, letter: letter, kind: .flag(apply), help: help, valueName: "", opposite: opposite)
    }

    /// An option without a value that gives a setting one.
    /// - Parameter opposite: The value behind `--no-`.
    static func flag<Value: Sendable>(
        _ name: String, _ letter: Character?, _ help: String,
        _ setting: Setting<Value>, _ value: Value, opposite: Value? = nil
    ) -> CurlOption {
        func giving(_ value: Value) -> OptionKind.Change { { $0[keyPath: setting] = value } }
        return .flag(name, letter, help, opposite: opposite.map(giving), giving(value))
    }

    /// An option without a value that switches a setting on.
    static func flag(
        _ name: String, _ letter: Character?, _ help: String, _ setting: Setting<Bool>
    ) -> CurlOption { .flag(name, letter, help, setting, true) }

    /// An option without a value that switches a setting on; behind `--no-` it switches it off.
    static func toggle(
        _ name: String, _ letter: Character?, _ help: String, _ setting: Setting<Bool>
    ) -> CurlOption { .flag(name, letter, help, setting, true, opposite: false) }

    /// An option with a value.
    static func value(
        _ name: String, _ letter: Character? = nil, _ valueName: String, _ help: String = "",
        _ apply: @escaping @Sendable (inout OptionGroup, String) throws(UsageError) -> Void
    ) -> CurlOption {
        CurlOption(name: name, letter: letter, kind: .value(apply), help: help, valueName: valueName)
    }

    /// An option whose value is that of a setting.
    /// - Parameter read: Makes the setting of the text, and of the option as messages name it.
    static func value<Value>(
        _ name: String, _ letter: Character?, _ valueName: String, _ help: String, _ setting: Setting<Value>,
        _ read: @escaping @Sendable (String, String) throws(UsageError) -> Value
    ) -> CurlOption {
        let shown = letter.map { "-\($0)" } ?? "--\(name)"
        return .value(name, letter, valueName, help) { (group, text) throws(UsageError) in
            group[keyPath: setting] = try read(text, shown)
        }
    }

    /// An option whose value is that of a setting, as it is.
    static func value(
        _ name: String, _ letter: Character?, _ valueName: String, _ help: String, _ setting: Setting<String?>
    ) -> CurlOption { .value(name, letter, valueName, help) { $0[keyPath: setting] = $1 } }

    /// An option that is known, and refused.
    static func refused(_ name: String, _ letter: Character? = nil, _ reason: String) -> CurlOption {
        CurlOption(name: name, letter: letter, kind: .refused(reason), help: "", valueName: "")
    }
}

/// What an option of curl's does here: the third column of the table of options.
enum OptionKind: Sendable {
    /// Changes what was read so far.
    typealias Change = @Sendable (inout OptionGroup) throws(UsageError) -> Void

    /// Carried out, without a value.
    case flag(Change)
    /// Carried out, with a value.
    case value(@Sendable (inout OptionGroup, String) throws(UsageError) -> Void)
    /// Ends this transfer's options and begins those of the next.
    case next
    /// Reads options from a file.
    case config
    /// Known, and refused by name: what its feature is.
    case refused(String)
}

/// The options of a command for its help.
enum OptionHelp {
    /// A line for each option that is carried out and has something to say.
    static func text(of options: CommandOptions, notes: String = "") -> String {
        (["USAGE: \(options.usage)", "", "OPTIONS:"] + options.all.filter { !$0.help.isEmpty }.map(line))
            .joined(separator: "\n") + notes
    }

    private static func line(_ option: CurlOption) -> String {
        let letter = option.letter.map { "-\($0), " } ?? "    "
        let value = option.valueName.isEmpty ? "" : " \(option.valueName)"
        let name = "  \(letter)--\(option.name)\(value)"
        let padding = String(repeating: " ", count: max(2, 40 - name.count))
        return name + padding + option.help
    }
}

/// The options of a command, by name and by letter.
struct CommandOptions: Sendable {
    /// All of them, in the order of the help.
    let all: [CurlOption]
    /// The line of the help that says how the command is called.
    let usage: String
    private let byName: [String: CurlOption]
    private let byLetter: [Character: CurlOption]

    /// The options of a command; of two with one name or letter the first counts.
    init(_ all: [CurlOption], usage: String) {
        self.all = all
        self.usage = usage
        byName = Dictionary(all.map { ($0.name, $0) }) { first, _ in first }
        byLetter = Dictionary(all.compactMap { option in option.letter.map { ($0, option) } }) { first, _ in
            first
        }
    }

    /// An option by its long name, without dashes.
    subscript(name: String) -> CurlOption? { byName[name] }

    /// An option by its letter.
    subscript(letter: Character) -> CurlOption? { byLetter[letter] }
}

/// A command that reads its words itself, as curl reads its own.
protocol WordsCommand: AsyncParsableCommand {
    /// The words behind the command's name.
    var words: [String] { get }

    /// Carries a command line out.
    /// - Throws: The exit code.
    static func run(_ words: [String]) async throws
}

extension CommandConfiguration {
    /// A command that reads its words itself, by its name behind `martlet`.
    init(words path: String, abstract: String) {
        self.init(
            commandName: path.split(separator: " ").last.map(String.init), abstract: abstract,
            discussion: "“martlet \(path) --help” lists the options.")
    }
}

extension WordsCommand { mutating func run() async throws { try await Self.run(words) } }

/// How the words of a command are read.
struct CommandWords: Sendable {
    /// The options there are.
    let options: CommandOptions
    /// What holds where nothing is given.
    var defaults = OptionGroup()
    /// What `--help` says behind the options.
    var notes = ""

    /// The groups of options that the words make; `--help` and `--version` are answered here.
    /// - Throws: The exit code, or the answer.
    func groups(
        of words: [String], preparing: (inout OptionGroup) -> Void = { _ in }
    ) async throws -> [OptionGroup] {
        var reader = CommandLineReader(options, defaults: defaults)
        do throws(UsageError) {
            try reader.read(words)
        } catch {
            await error.tell()
            throw error.status
        }
        var groups = reader.groups
        for index in groups.indices { preparing(&groups[index]) }
        ProcessTitle.hideSecrets(of: groups)
        let global = groups.last?.global ?? GlobalOptions()
        if global.showsHelp { throw CleanExit.message(OptionHelp.text(of: options, notes: notes)) }
        if global.showsVersion { throw CleanExit.message("martlet \(martletVersion)") }
        return groups
    }

    /// Reads the words as one group and carries them out.
    /// - Throws: The exit code, where it is not that of success.
    func run(
        _ words: [String], preparing: (inout OptionGroup) -> Void = { _ in },
        _ body: (OptionGroup) async throws(UsageError) -> ExitStatus
    ) async throws {
        let group = try await groups(of: words, preparing: preparing).first ?? defaults
        let status: ExitStatus
        do throws(UsageError) {
            status = try await body(group)
        } catch {
            if group.global.tellsErrors { await error.tell() }
            throw error.status
        }
        if status != .success { throw status }
    }
}
