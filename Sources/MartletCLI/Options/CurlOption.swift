import ArgumentParser
import Martlet

/// An option of the command line: curl's or Martlet's own.
struct CurlOption: Sendable {
    typealias Setting<Value> = any WritableKeyPath<TransferOptions, Value> & Sendable

    let name: String
    let letter: Character?
    /// The name of the value in the help; empty for an option without one.
    let valueName: String
    let kind: OptionKind
    /// One line for the help; empty for options that are not listed there.
    var help: String
    /// The effect of `--no-NAME`; `nil` if there is no such option.
    let opposite: OptionKind.Change?

    var takesValue: Bool {
        switch kind {
        case .value, .config: true
        case .flag, .next, .rejected: false
        }
    }

    /// - Parameter form: The option as the help shows it: `-o, --output FILE`, `--raw`.
    init(_ form: String, _ help: String = "", _ kind: OptionKind, opposite: OptionKind.Change? = nil) {
        var words = form.split(separator: " ")[...]
        letter = form.hasPrefix("--") ? nil : words.popFirst()?.dropFirst().first
        name = String((words.popFirst() ?? "").dropFirst(2))
        valueName = words.joined(separator: " ")
        (self.kind, self.help, self.opposite) = (kind, help, opposite)
    }

    static func flag(
        _ form: String, _ help: String, opposite: OptionKind.Change? = nil, _ apply: @escaping OptionKind.Change
    ) -> CurlOption { CurlOption(form, help, .flag(apply), opposite: opposite) }

    /// An option that sets a setting to `value`; `--no-NAME` sets it to `opposite`, if that is not `nil`.
    static func flag<Value: Sendable>(
        _ form: String, _ help: String, _ setting: Setting<Value>, _ value: Value, opposite: Value? = nil
    ) -> CurlOption {
        func giving(_ value: Value) -> OptionKind.Change { { $0[keyPath: setting] = value } }
        return .flag(form, help, opposite: opposite.map(giving), giving(value))
    }

    /// An option that switches a setting on, and off with `--no-NAME`.
    static func toggle(_ form: String, _ help: String, _ setting: Setting<Bool>) -> CurlOption {
        .flag(form, help, setting, true, opposite: false)
    }

    /// An option that is accepted and has no effect. With `hasOpposite`, the same is true of `--no-NAME`.
    static func ignored(_ form: String, _ help: String = "", hasOpposite: Bool = false) -> CurlOption {
        let nothing: OptionKind.Change = { _ in }
        return .flag(form, help, opposite: hasOpposite ? nothing : nil, nothing)
    }

    static func value(_ form: String, _ help: String, _ apply: @escaping OptionKind.Reading) -> CurlOption {
        CurlOption(form, help, .value(apply))
    }

    /// An option whose value, converted by `read`, becomes the value of a setting.
    static func value<Value>(
        _ form: String, _ help: String, _ setting: Setting<Value>,
        _ read: @escaping @Sendable (String) throws(UsageError) -> Value
    ) -> CurlOption {
        .value(form, help) { (group, text) throws(UsageError) in group[keyPath: setting] = try read(text) }
    }

    /// An option whose value becomes the value of a setting unchanged.
    static func value(_ form: String, _ help: String, _ setting: Setting<String?>) -> CurlOption {
        .value(form, help) { $0[keyPath: setting] = $1 }
    }

    /// An option that appends its value to a list.
    static func list<Value>(
        _ form: String, _ help: String, _ setting: Setting<[Value]>, _ make: @escaping @Sendable (String) -> Value
    ) -> CurlOption { .value(form, help) { $0[keyPath: setting].append(make($1)) } }

    /// An option whose value is one of some words, which are added to the help.
    static func choice<Value: Sendable>(
        _ form: String, _ help: String, _ setting: Setting<Value>, _ values: KeyValuePairs<String, Value>
    ) -> CurlOption {
        .value(form, "\(help) \(values.map(\.key).joined(separator: ", "))", setting) { (text) throws(UsageError) in
            try OptionValues.choice(text, values)
        }
    }

    /// An option whose value is a whole number within bounds.
    static func number(_ form: String, _ help: String, _ range: ClosedRange<Int>, _ setting: Setting<Int>) -> CurlOption
    { .value(form + " NUMBER", help, setting, OptionValues.number(in: range)) }

    /// An option whose value is a number of seconds; 0 means no limit.
    static func seconds(_ form: String, _ help: String, _ setting: Setting<Duration?>) -> CurlOption {
        .value(form + " SECONDS", help, setting, OptionValues.seconds)
    }

    /// An option whose value is a number of bytes; 0 means no limit.
    static func size(_ form: String, _ help: String, _ setting: Setting<Int?>) -> CurlOption {
        .value(form + " BYTES", help, setting, OptionValues.size)
    }

    /// An option whose value is a directory; an empty name is rejected.
    static func directory(_ form: String, _ help: String, _ setting: Setting<String?>) -> CurlOption {
        .value(form + " DIR", help, setting) { (text) throws(UsageError) in try OptionValues.text(text, "a directory") }
    }

    /// An option that is known and rejected, with the reason for the message.
    static func rejected(_ name: String, _ letter: Character?, _ reason: String) -> CurlOption {
        CurlOption(letter.map { "-\($0), --\(name)" } ?? "--\(name)", "", .rejected(reason))
    }
}

/// The effect of an option. The messages of all errors begin with the option.
enum OptionKind: Sendable {
    typealias Change = @Sendable (inout TransferOptions) throws(UsageError) -> Void
    typealias Reading = @Sendable (inout TransferOptions, String) throws(UsageError) -> Void

    case flag(Change)
    case value(Reading)
    /// Ends the options of this transfer and begins those of the next.
    case next
    case config
    case rejected(String)
}

/// The options of a command, by name and by letter.
struct CommandOptions: Sendable {
    let all: [CurlOption]
    /// The synopsis of the command, for the help.
    let usage: String
    let notes: String
    let defaults: TransferOptions
    private let byName: [String: CurlOption]
    private let byLetter: [Character: CurlOption]

    /// Creates the options of a command. Of two options with the same name or letter, the first counts.
    init(_ all: [CurlOption], usage: String, notes: String = "", defaults: (inout TransferOptions) -> Void = { _ in }) {
        (self.all, self.usage, self.notes) = (all, usage, notes)
        var group = TransferOptions()
        defaults(&group)
        self.defaults = group
        byName = Dictionary(all.map { ($0.name, $0) }) { first, _ in first }
        byLetter = Dictionary(all.compactMap { option in option.letter.map { ($0, option) } }) { first, _ in first }
    }

    subscript(name: String) -> CurlOption? { byName[name] }

    subscript(letter: Character) -> CurlOption? { byLetter[letter] }

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

    /// Parses arguments into groups. Throws the exit code of an error, or the text of `--help` and `--version`.
    func groups(of words: [String]) async throws -> [TransferOptions] {
        var reader = CommandLineParser(self)
        do throws(UsageError) { try reader.read(words) } catch { throw await error.printMessage() }
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

/// A command that parses its arguments itself, by the rules of curl.
protocol WordsCommand: AsyncParsableCommand {
    /// The command's name after `martlet`, word by word.
    static var path: [String] { get }
    static var options: CommandOptions { get }
    /// The arguments after the command's name.
    var words: [String] { get }

    static func run(_ groups: [TransferOptions]) async throws(UsageError) -> ExitStatus
}

extension WordsCommand {
    mutating func run() async throws { try await Self.carryOut(words) }

    static func makeConfiguration(_ abstract: String) -> CommandConfiguration {
        CommandConfiguration(
            commandName: path.last, abstract: abstract,
            discussion: "“martlet \(path.joined(separator: " ")) --help” lists the options.")
    }

    /// Parses the arguments and runs the command. Throws the exit code, unless it is that of success.
    static func carryOut(_ words: [String]) async throws {
        let groups = try await options.groups(of: words)
        let status: ExitStatus
        do throws(UsageError) { status = try await run(groups) } catch {
            if groups.global.printsErrors { await error.printMessage() }
            throw error.status
        }
        if status != .success { throw status }
    }
}
