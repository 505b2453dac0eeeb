import ArgumentParser

/// `martlet demo`: the main job, against an origin of its own.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Start the loopback origin over TLS, do everything once, and say what happened.")

    mutating func run() async throws {
        guard await Demo.run() else { throw ExitStatus(code: 1) }
    }
}
