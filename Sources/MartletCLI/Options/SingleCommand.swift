import ArgumentParser
import Martlet

/// A command whose words are read as those of `get`, as one group of options.
struct SingleCommand: Sendable {
    /// The options there are.
    let options: CommandOptions
    /// What holds where nothing is given.
    var defaults = OptionGroup()
    /// What `--help` says behind the options.
    var notes = ""

    /// Reads the words and carries them out: `--help` and `--version` here, all else by `body`.
    /// - Throws: The exit code, where it is not that of success.
    func run(
        _ words: [String], preparing: (inout OptionGroup) -> Void = { _ in },
        _ body: (OptionGroup) async throws(UsageError) -> ExitStatus
    ) async throws {
        var reader = CommandLineReader(options, defaults: defaults)
        do throws(UsageError) {
            try reader.read(words)
        } catch {
            await error.tell()
            throw error.status
        }
        var group = reader.groups.first ?? defaults
        preparing(&group)
        ProcessTitle.hideSecrets(of: [group])
        if group.global.showsHelp { throw CleanExit.message(OptionHelp.text(of: options, notes: notes)) }
        if group.global.showsVersion { throw CleanExit.message("martlet \(martletVersion)") }
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
