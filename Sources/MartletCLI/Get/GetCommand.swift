import ArgumentParser
import Martlet

/// `martlet get`, which is also what `martlet` does without a command's name: curl's options, read by a
/// reader of their own.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Fetch URLs and print what they give, with curl's options.",
        discussion: "“martlet get --help” lists the options.")

    @Argument(parsing: .captureForPassthrough, help: "Options and URLs, in any order.")
    var words: [String] = []

    mutating func run() async throws {
        try await GetCommand.run(words)
    }

    /// Carries a command line out.
    /// - Throws: The exit code.
    static func run(_ words: [String]) async throws {
        var reader = CommandLineReader()
        do throws(UsageError) {
            try reader.read(words)
        } catch {
            await error.tell()
            throw error.status
        }
        ProcessTitle.hideSecrets(of: reader.groups)
        let global = reader.groups.last?.global ?? GlobalOptions()
        if global.showsHelp {
            throw CleanExit.message(OptionHelp.text(of: OptionTable.commandOptions))
        }
        if global.showsVersion {
            throw CleanExit.message("martlet \(martletVersion)")
        }
        let status = await GetRunner(groups: reader.groups).run()
        if status != .success { throw status }
    }
}
