import ArgumentParser
import Martlet

/// One of curl's options, or of our own.
struct CurlOption: Sendable {
    typealias Setting<Value> = any WritableKeyPath<TransferOptions, Value> & Sendable

    /// The long name, without dashes.
    var name: String
    var letter: Character?
    var kind: OptionKind
    /// One line for the help; empty for options that are not listed there.
    var help = ""
    /// The name of the value in the help.
    var valueName = ""
    /// The effect of the name after `--no-`; `nil` if there is no such option.
    var opposite: OptionKind.Change?

    static func flag(
        _ name: String, _ letter: Character? = nil, _ help: String = "",
        opposite: OptionKind.Change? = nil, _ apply: @escaping OptionKind.Change
    ) -> CurlOption {
        CurlOption(name: name, letter: letter, kind: .flag(apply), help: help, opposite: opposite)
    }

    /// An option without a value that gives a setting one.
    /// - Parameter opposite: The value for `--no-`.
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

    /// An option without a value that switches a setting on, and off with `--no-`.
    static func toggle(
        _ name: String, _ letter: Character?, _ help: String, _ setting: Setting<Bool>
    ) -> CurlOption { .flag(name, letter, help, setting, true, opposite: false) }

    /// An option that is accepted and has no effect.
    static func ignored(
        _ name: String, _ letter: Character? = nil, _ help: String = "", hasOpposite: Bool = false
    ) -> CurlOption {
        let nothing: OptionKind.Change = { _ in }
        return .flag(name, letter, help, opposite: hasOpposite ? nothing : nil, nothing)
    }

    static func value(
        _ name: String, _ letter: Character? = nil, _ valueName: String, _ help: String = "",
        _ apply: @escaping @Sendable (inout TransferOptions, String) throws(UsageError) -> Void
    ) -> CurlOption {
        CurlOption(name: name, letter: letter, kind: .value(apply), help: help, valueName: valueName)
    }

    /// An option with the value of a setting.
    /// - Parameter read: Makes the setting from the text, and from the option's name for messages.
    static func value<Value>(
        _ name: String, _ letter: Character?, _ valueName: String, _ help: String, _ setting: Setting<Value>,
        _ read: @escaping @Sendable (String, String) throws(UsageError) -> Value
    ) -> CurlOption {
        let shown = letter.map { "-\($0)" } ?? "--\(name)"
        return .value(name, letter, valueName, help) { (group, text) throws(UsageError) in
            group[keyPath: setting] = try read(text, shown)
        }
    }

    /// An option with the value of a setting, as it is given.
    static func value(
        _ name: String, _ letter: Character?, _ valueName: String, _ help: String, _ setting: Setting<String?>
    ) -> CurlOption { .value(name, letter, valueName, help) { $0[keyPath: setting] = $1 } }

    /// An option that takes a value for a list of them.
    static func list<Value>(
        _ name: String, _ letter: Character?, _ valueName: String, _ help: String,
        _ setting: Setting<[Value]>, _ make: @escaping @Sendable (String) -> Value
    ) -> CurlOption { .value(name, letter, valueName, help) { $0[keyPath: setting].append(make($1)) } }

    /// An option in seconds; 0 is no limit.
    static func seconds(
        _ name: String, _ letter: Character?, _ help: String, _ setting: Setting<Duration?>
    ) -> CurlOption { .value(name, letter, "SECONDS", help, setting, OptionValues.seconds) }

    /// An option in bytes; 0 is no limit.
    static func size(_ name: String, _ help: String, _ setting: Setting<Int?>) -> CurlOption {
        .value(name, nil, "BYTES", help, setting, OptionValues.size)
    }

    /// A directory, with a name that is not empty.
    static func folder(_ name: String, _ help: String, _ setting: Setting<String?>) -> CurlOption {
        .value(name, nil, "DIR", help, setting) { (text, option) throws(UsageError) in
            try check(!text.isEmpty, "option \(option): takes a folder")
            return text
        }
    }

    /// An option that is known, and rejected.
    static func refused(_ name: String, _ letter: Character? = nil, _ reason: String) -> CurlOption {
        CurlOption(name: name, letter: letter, kind: .refused(reason))
    }
}

/// The effect of an option.
enum OptionKind: Sendable {
    typealias Change = @Sendable (inout TransferOptions) throws(UsageError) -> Void

    case flag(Change)
    case value(@Sendable (inout TransferOptions, String) throws(UsageError) -> Void)
    /// Ends the options of this transfer and begins those of the next.
    case next
    /// Reads options from a file.
    case config
    /// Known, and rejected by name for a reason.
    case refused(String)
}

/// The options of a command, by name and by letter.
struct CommandOptions: Sendable {
    /// All options, in the order of the help.
    let all: [CurlOption]
    /// The synopsis of the command, for the help.
    let usage: String
    /// The text of the help after the options.
    let notes: String
    /// The settings without any option.
    let defaults: TransferOptions
    private let byName: [String: CurlOption]
    private let byLetter: [Character: CurlOption]

    /// The options of a command; of two with one name or letter the first counts.
    init(
        _ all: [CurlOption], usage: String, notes: String = "",
        defaults: (inout TransferOptions) -> Void = { _ in }
    ) {
        self.all = all
        self.usage = usage
        self.notes = notes
        var group = TransferOptions()
        defaults(&group)
        self.defaults = group
        byName = Dictionary(all.map { ($0.name, $0) }) { first, _ in first }
        byLetter = Dictionary(all.compactMap { option in option.letter.map { ($0, option) } }) { first, _ in
            first
        }
    }

    /// An option by its long name, without dashes.
    subscript(name: String) -> CurlOption? { byName[name] }

    subscript(letter: Character) -> CurlOption? { byLetter[letter] }

    /// The options that are carried out and have a line in the help.
    var listed: [CurlOption] { all.filter { !$0.help.isEmpty } }

    /// The help: a line for each listed option, and the notes.
    var help: String {
        let lines = listed.map { option in
            let letter = option.letter.map { "-\($0), " } ?? "    "
            let value = option.valueName.isEmpty ? "" : " \(option.valueName)"
            let name = "  \(letter)--\(option.name)\(value)"
            return name + String(repeating: " ", count: max(2, 40 - name.count)) + option.help
        }
        return (["USAGE: \(usage)", "", "OPTIONS:"] + lines).joined(separator: "\n") + notes
    }

    /// The groups of options that words make; `--help` and `--version` are answered here.
    /// - Throws: The exit code, or the answer.
    func groups(of words: [String]) async throws -> [TransferOptions] {
        var reader = CommandLineParser(self)
        do throws(UsageError) { try reader.read(words) } catch {
            await error.tell()
            throw error.status
        }
        ProcessTitle.hideSecrets(of: reader.groups)
        let global = reader.groups.global
        if global.showsHelp { throw CleanExit.message(help) }
        if global.showsVersion { throw CleanExit.message("martlet \(martletVersion)") }
        return reader.groups
    }
}

extension [TransferOptions] {
    /// The options of the whole command line, which each group takes over from the one before.
    var global: GlobalOptions { last?.global ?? GlobalOptions() }
}

/// A command that reads its words itself, as curl does.
protocol WordsCommand: AsyncParsableCommand {
    /// The words of its name after `martlet`.
    static var path: [String] { get }
    static var options: CommandOptions { get }
    /// The words after the command's name.
    var words: [String] { get }

    /// - Returns: The exit code.
    static func run(_ groups: [TransferOptions]) async throws(UsageError) -> ExitStatus
}

extension WordsCommand {
    mutating func run() async throws { try await Self.carryOut(words) }

    static func makeConfiguration(_ abstract: String) -> CommandConfiguration {
        CommandConfiguration(
            commandName: path.last, abstract: abstract,
            discussion: "“martlet \(path.joined(separator: " ")) --help” lists the options.")
    }

    /// - Throws: The exit code, unless it is that of success.
    static func carryOut(_ words: [String]) async throws {
        let groups = try await options.groups(of: words)
        let status: ExitStatus
        do throws(UsageError) { status = try await run(groups) } catch {
            if groups.global.tellsErrors { await error.tell() }
            throw error.status
        }
        if status != .success { throw status }
    }
}
